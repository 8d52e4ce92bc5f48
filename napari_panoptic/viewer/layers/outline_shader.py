"""Functions for the graphics card that draw outlines of labels as lines (GLSL 1.20).

The labels and their colours are on the card already. In place of napari's function that reads the
label of a screen pixel comes one that also finds which share of the pixel the outline of an object
covers. So lines have the same width at every zoom, and nothing is computed again when the view
moves or labels change.

A layer can show the outlines of two label images of the same size, one beneath the other.

There are three ways to find an outline, each a program of its own since software renderers compute
all branches of a program. Their cost is the number of labels they read:

- ``NEAR``, 4 labels, where a label pixel is much larger than the line: the line goes from middle to
  middle of the pixel edges (marching squares), so that single steps become straight and longer ones
  are chamfered. It is nowhere further from the edges of the pixels than 0.36 px.
- ``BETWEEN``, 5 labels: the same line, found from a pixel and those beside it; the corners between
  two lines are a little fuller.
- ``FAR``, 5 labels, where a label pixel is hardly larger than one of the screen: how many of four
  places around the screen pixel lie in another object. Lines have no casing.
"""

from __future__ import annotations

import re

from napari_panoptic.kernels.drawing import HATCH_SPACING_PX

NEAR, BETWEEN, FAR = "near", "between", "far"
WAYS = (NEAR, BETWEEN, FAR)

NEAR_PX, BETWEEN_PX = 0.45, 1.15
"""How far from its outline, in label pixels, the first two ways see an object."""

UNIFORMS = {
    "texture": "sampler2D",  # the labels
    "objects": "sampler2D",  # 256 x 256: of each label, see `outlines.OBJECTS`
    "shape": "vec2",  # width and height of the labels
    "most": "float",  # the label that is read as 1.0
    "px": "float",  # label pixels per screen pixel
    "side_px": "float",  # the same in px of the sides, where the labels are a coarser level
    "half_width": "float",  # of lines, in screen px
    "more": "float",  # half of a full share in `objects`
    "beneath": "sampler2D",  # labels of as many pixels, whose outlines lie beneath
    "half_width_beneath": "float",  # of their lines, in screen px
    "area": "float",  # the one of them that is hatched
    "casing": "float",  # width of a pale line on either side of them, in screen px
}
"""Parameters of the programs."""

_COLOUR_OF_ONE = """
vec4 line_colour(float label, float line, float casing);
vec4 outline_colour(vec4 found) {  // the label, and the shares that the line and its casing cover
    vec4 one = line_colour(found.r, found.g, found.b);
    return vec4(one.rgb / max(one.a, 0.001), one.a);
}
"""
_COLOUR_OF_TWO = """
vec4 line_colour(float label, float line, float casing);
vec4 outline_colour(vec4 found) {
    vec2 lines = floor(found.ga) / 255.0, casings = fract(found.ga) / 0.99;
    vec4 above = line_colour(found.r, lines.x, casings.x);
    vec4 both = above + (1.0 - above.a) * line_colour(found.b, lines.y, casings.y);
    return vec4(both.rgb / max(both.a, 0.001), both.a);
}
"""
_LINE_COLOUR = """
vec4 line_colour(float label, float line, float casing) {  // times its opacity
    vec4 colour = $colour_of(label);
    vec2 shares = vec2(line, $casing_alpha * casing * (1.0 - line)) * colour.a;
    return vec4(colour.rgb * shares.x + vec3(shares.y), shares.x + shares.y);
}
"""

_PROTOTYPE = """
vec3 outline_in(sampler2D labels, vec2 texcoord, float usual_half_width);
"""
_LOOK_UP_ONE = """
vec4 outline_lookup(vec2 texcoord) {
    vec3 found = outline_in($texture, texcoord, $half_width);
    if (found.z <= 0.0) discard;
    return vec4(found, 1.0);
}
"""
_LOOK_UP_TWO = """
vec4 outline_lookup(vec2 texcoord) {  // a share each in the whole and in the broken part
    vec3 above = outline_in($texture, texcoord, $half_width);
    vec3 below = outline_in($beneath, texcoord, $half_width_beneath);
    float here = texture2D($beneath, texcoord).r;
    vec2 at = floor(texcoord * $shape);
    bool is_hatched = floor(here * 65535.0 + 0.5) == $area && mod(at.x + at.y, HATCH) < 0.5;
    if (is_hatched) below = vec3(here, 1.0, 1.0);
    if (max(above.z, below.z) <= 0.0) discard;
    vec2 shares = floor(vec2(above.y, below.y) * 255.0) + 0.99 * vec2(above.z, below.z);
    return vec4(above.x, shares.x, below.x, shares.y);
}
"""
_OUTLINE_IN = """
vec3 outline_in(sampler2D labels, vec2 texcoord, float usual_half_width) {
    vec2 p = texcoord * $shape, one = 1.0 / $shape;
    float label;  // the object here, or one beside the background here
    FIND
    float number = floor(label * $most + 0.5), row = floor(number / 256.0);
    vec4 object = texture2D($objects, (vec2(number - 256.0 * row, row) + 0.5) / 256.0);
    float most = 255.0 / 8.0 * object.r / $side_px;  // half of a quarter of its shorter side
    COVER
    return label > 0.0 ? vec3(label, line, casing) : vec3(0.0);
}
"""
_COVER = """
    float half_width = min(usual_half_width + $more * object.g, most);
    float beyond = half_width + 0.5 - abs(far) / $px;
    float line = clamp(beyond, 0.0, min(1.0, 2.0 * half_width));
    float casing = clamp(beyond + min($casing, half_width), 0.0, 1.0);
"""

_NEAR_HELPERS = """
float corner_distance(vec4 inside, vec2 u);
"""
_NEAR_FIND = """
    vec2 at = floor(p - 0.5), u = p - 0.5 - at, c = (at + 0.5) * one;
    vec4 four = vec4(
        texture2D(labels, c).r, texture2D(labels, c + vec2(one.x, 0.0)).r,
        texture2D(labels, c + vec2(0.0, one.y)).r, texture2D(labels, c + one).r);
    vec2 upper = u.x < 0.5 ? four.xy : four.yx, lower = u.x < 0.5 ? four.zw : four.wz;
    if (u.y >= 0.5) { vec2 swapped = upper; upper = lower; lower = swapped; }
    label = upper.x;  // of the four, the pixel here; then those beside it, and across
    if (label <= 0.0) {
        bool is_beside = abs(u.x - 0.5) < abs(u.y - 0.5);
        label = is_beside ? upper.y : lower.x;
        if (label <= 0.0) label = is_beside ? lower.x : upper.y;
        if (label <= 0.0) label = lower.y;
    }
    float far = corner_distance(vec4(equal(four, vec4(label))), u);
"""
_NEAR_END = """
float corner_distance(vec4 inside, vec2 u) {  // from the line around the corners that are inside
    float n = dot(inside, vec4(1.0));
    if (n > 1.5 && n < 2.5) {
        if (inside.x == inside.y) return u.y - 0.5;
        if (inside.x == inside.z) return u.x - 0.5;
    }
    vec4 cut = vec4(u.x + u.y, 1.0 - u.x + u.y, 1.0 + u.x - u.y, 2.0 - u.x - u.y);
    cut = (cut - 0.5) * 0.70710678 + 9.0 * (n > 2.5 ? inside : 1.0 - inside);
    return min(min(cut.x, cut.y), min(cut.z, cut.w));
}
"""
_BETWEEN_FIND = """
    vec2 low = fract(p), high = 1.0 - low;  // how far the edges of the pixel here are
    float own = texture2D(labels, texcoord).r;
    float left = texture2D(labels, texcoord - vec2(one.x, 0.0)).r;
    float right = texture2D(labels, texcoord + vec2(one.x, 0.0)).r;
    float above = texture2D(labels, texcoord - vec2(0.0, one.y)).r;
    float below = texture2D(labels, texcoord + vec2(0.0, one.y)).r;
    vec4 edges = vec4(low, high) + 9.0 * vec4(equal(vec4(left, above, right, below), vec4(own)));
    vec2 nearest = min(edges.xy, edges.zw);
    float across = edges.x < edges.z ? left : right, along = edges.y < edges.w ? above : below;
    label = own > 0.0 ? own : nearest.x < nearest.y ? across : along;
    float far = min(min(nearest.x, nearest.y), (nearest.x + nearest.y - 0.5) * 0.70710678);
"""
_FAR_FIND = """
    vec2 reach = (usual_half_width + vec2(0.5, -0.5)) * $px;
    vec2 one_way = reach * one, other_way = vec2(-reach.y, reach.x) * one;
    float own = texture2D(labels, texcoord).r;
    vec4 four = vec4(
        texture2D(labels, texcoord + one_way).r, texture2D(labels, texcoord - one_way).r,
        texture2D(labels, texcoord + other_way).r, texture2D(labels, texcoord - other_way).r);
    vec2 most_of_two = max(four.xy, four.zw);
    label = own > 0.0 ? own : max(most_of_two.x, most_of_two.y);
    float others = dot(vec4(notEqual(four, vec4(own))), vec4(1.0));
"""
_FAR_COVER = """
    float line = min(0.5 * others * (1.0 + 2.0 * $more * object.g), 1.0);
    line *= min(most / usual_half_width, 1.0);
    float casing = line;
"""
_PARTS = {
    NEAR: (_NEAR_HELPERS, _NEAR_FIND, _COVER, _NEAR_END),
    BETWEEN: ("", _BETWEEN_FIND, _COVER, ""),
    FAR: ("", _FAR_FIND, _FAR_COVER, ""),
}


def program(way: str, *, are_two: bool = False) -> str:
    """Return the functions of a way to find outlines, with ``$`` before their parameters.

    Parameters
    ----------
    way
        One of `WAYS`.
    are_two
        Whether there are other labels beneath.
    """
    # The function that is called from without comes first: vispy takes the first one for it.
    prototypes, find, cover, end = _PARTS[way]
    code = _OUTLINE_IN.replace("FIND", find.strip()).replace("COVER", cover.strip())
    look_up = _LOOK_UP_TWO if are_two else _LOOK_UP_ONE
    look_up = look_up.replace("HATCH", f"{float(HATCH_SPACING_PX)}")
    return _PROTOTYPE + prototypes + look_up + code + end


def colour(casing_alpha: float, *, are_two: bool = False) -> str:
    """Return the function that colours what such a program found."""
    code = (_COLOUR_OF_TWO if are_two else _COLOUR_OF_ONE) + _LINE_COLOUR
    return code.replace("$casing_alpha", f"{casing_alpha:.3f}")


def needed(program: str) -> frozenset[str]:
    """Return the names of a program's parameters."""
    return frozenset(re.findall(r"\$(\w+)", program))


def standalone(program: str) -> str:
    """Return the same as a part of a shader that compiles by itself."""
    uniforms = "\n".join(f"uniform {kind} u_{name};" for name, kind in UNIFORMS.items())
    return "#version 120\n" + uniforms + re.sub(r"\$(\w+)", r"u_\1", program)
