"""Functions for the graphics card that draw outlines of labels as lines (GLSL 1.20).

The labels and their colours are on the card already. In place of napari's function that reads the
label of a screen pixel comes one that also finds how far the nearest outline is, and thus which
share of the screen pixel it covers. So the lines have the same width at every zoom, and nothing is
computed again when the view moves or labels change.

There are three ways to find the distance, each a program of its own since software renderers
compute all branches of a program:

- ``NEAR``, label pixels much larger than lines: the line goes from middle to middle of the pixel
  edges (marching squares), so that single steps become straight and longer ones are chamfered.
- ``BETWEEN``: the line around the object smoothed by a quadratic B-spline.
- ``FAR``, label pixels not much larger than screen pixels: the share of a small circle around the
  screen pixel that lies in another object. Lines then have no casing.

No line is further from the edges of the pixels than 0.36 px.
"""

from __future__ import annotations

import math
import re

NEAR, BETWEEN, FAR = "near", "between", "far"

NEAR_PX, BETWEEN_PX = 0.45, 1.0
"""How far from its outline, in label pixels, the first two ways see an object."""

UNIFORMS = {
    "texture": "sampler2D",  # the labels
    "sides": "sampler2D",  # 256 x 256: the shorter side of each object in label px, 255 at most
    "shape": "vec2",  # width and height of the labels
    "most": "float",  # the label that is read as 1.0
    "px": "float",  # label pixels per screen pixel
    "side_px": "float",  # the same in px of the sides, where the labels are a coarser level
    "half_width": "float",  # of lines, in screen px
    "casing": "float",  # width of a pale line on either side of them, in screen px
    "selected": "float",  # the label of the object whose line is wider
    "more": "float",  # half of how much wider it is, in screen px
}
"""What each program needs to know."""

COLOUR = """
vec4 outline_colour(vec4 found) {  // the label, and the shares that the line and its casing cover
    vec4 colour = $colour_of(found.r);
    float line = found.g * colour.a, pale = found.b * $casing_alpha * colour.a * (1.0 - line);
    float alpha = line + pale;
    return vec4((colour.rgb * line + vec3(pale)) / max(alpha, 0.001), alpha);
}
"""

_CIRCLE = 6  # places on the circle

_PROTOTYPES = """
float object_half_width(float label);
float covered(float far, float half_width);
float corner_distance(vec4 inside, vec2 u);
float smooth_distance(mat3 inside, vec3 wx, vec3 wy, vec3 dx, vec3 dy);
"""
_LOOK_UP = """
vec4 outline_lookup(vec2 texcoord) {
    if (texcoord.x < 0.0 || texcoord.x > 1.0 || texcoord.y < 0.0 || texcoord.y > 1.0) discard;
    vec2 p = texcoord * $shape, one = 1.0 / $shape;
    float label = 0.0;  // the object here, or one beside the background here
    float far = 99.0;  // from its outline in label px
    {
        FIND
    }
    far = abs(far) / $px;
    float half_width = object_half_width(label), line = covered(far, half_width);
    float casing = covered(far, half_width + CASING);  // the line included
    if (label <= 0.0 || casing <= 0.0) discard;
    return vec4(label, line, casing, 1.0);
}
"""
_HELPERS = """
float covered(float far, float half_width) {  // share of a screen pixel at a distance from a line
    return clamp(min(half_width, far + 0.5) - max(-half_width, far - 0.5), 0.0, 1.0);
}
float object_half_width(float label) {
    float number = floor(label * $most + 0.5);
    return min($half_width + $more * float(number == $selected), LIMIT);
}
"""
_LIMIT_HELPERS = """
float limit(float number) {  // an eighth of the shorter side of an object
    float row = floor(number / 256.0);
    vec2 place = (vec2(number - 256.0 * row, row) + 0.5) / 256.0;
    return 255.0 * texture2D($sides, place).r / 8.0 / $side_px;
}
"""

_NEAR_HELPERS = """
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
_NEAR_FIND = """
        vec2 at = floor(p - 0.5), u = p - 0.5 - at, c = (at + 0.5) * one;
        vec4 four = vec4(
            texture2D($texture, c).r, texture2D($texture, c + one * vec2(1.0, 0.0)).r,
            texture2D($texture, c + one * vec2(0.0, 1.0)).r, texture2D($texture, c + one).r);
        vec2 upper = u.x < 0.5 ? four.xy : four.yx, lower = u.x < 0.5 ? four.zw : four.wz;
        if (u.y >= 0.5) { vec2 swapped = upper; upper = lower; lower = swapped; }
        label = upper.x;  // of the four, the pixel here; then those beside it, and across
        if (label <= 0.0) {
            bool is_beside = abs(u.x - 0.5) < abs(u.y - 0.5);
            label = is_beside ? upper.y : lower.x;
            if (label <= 0.0) label = is_beside ? lower.x : upper.y;
            if (label <= 0.0) label = lower.y;
        }
        far = corner_distance(vec4(equal(four, vec4(label))), u);
"""

_BETWEEN_HELPERS = """
float smooth_distance(mat3 inside, vec3 wx, vec3 wy, vec3 dx, vec3 dy) {
    // From the 0.5 level of an object that was smoothed: its height is a square of the distance.
    vec3 rows = wx * inside;
    float height = dot(rows, wy) - 0.5, s = sqrt(max(1.0 - 2.0 * abs(height), 0.0001));
    return (1.0 - s) / max(length(vec2(dot(dx * inside, wy), dot(rows, dy))) / s, 0.35);
}
"""
_BETWEEN_FIND = """
        vec2 f = fract(p) - 0.5, c = texcoord - f * one, low = 0.5 - f, high = 0.5 + f;
        vec3 wx = vec3(0.5 * low.x * low.x, 0.75 - f.x * f.x, 0.5 * high.x * high.x);
        vec3 wy = vec3(0.5 * low.y * low.y, 0.75 - f.y * f.y, 0.5 * high.y * high.y);
        vec3 dx = vec3(-low.x, -2.0 * f.x, high.x), dy = vec3(-low.y, -2.0 * f.y, high.y);
        mat3 nine = mat3(ROWS);
        label = nine[1].y;
        if (label <= 0.0) {
            float beside = f.x < 0.0 ? nine[1].x : nine[1].z;
            float below = f.y < 0.0 ? nine[0].y : nine[2].y;
            label = abs(f.x) > abs(f.y) ? beside : below;
            if (label <= 0.0) label = beside + below;
            if (label <= 0.0) {
                vec3 most = max(max(nine[0], nine[1]), nine[2]);
                label = max(max(most.x, most.y), most.z);
            }
        }
        mat3 inside = mat3(INSIDE);
        far = smooth_distance(inside, wx, wy, dx, dy);
        if (inside[0] == vec3(1.0) && inside[1] == vec3(1.0) && inside[2] == vec3(1.0)) far = 99.0;
"""
_FAR_FIND = """
        float own = texture2D($texture, texcoord).r, other = 0.0;
        float reach = own > 0.0 ? object_half_width(own) : $half_width;
        reach = max(reach, 0.5) + 0.5;
        float same = 0.0, theirs = 0.0, s;
        vec2 by = reach * $px * one;
        CIRCLE
        label = own > 0.0 ? own : other;
        float share = own > 0.0 ? 1.0 - same / COUNT : theirs / COUNT;
        if (share > 0.0) far = reach * $px * cos(3.14159265 * min(share, 0.5));
"""
_FAR_PLACE = (
    "s = texture2D($texture, texcoord + by * vec2({x:.4f}, {y:.4f})).r; same += float(s == own);"
    " if (s > 0.0) {{ theirs += 1.0; other = s; }}"
)


def program(way: str) -> str:
    """Return the functions of a way to find outlines, with ``$`` before what they need to know."""
    # Where lines are near, only objects of one pixel could be too thin for them.
    helpers, find, limit, casing = {
        NEAR: (_NEAR_HELPERS, _NEAR_FIND, "99.0", "min($casing, half_width)"),
        BETWEEN: (_BETWEEN_HELPERS, _between(), "limit(number)", "min($casing, half_width)"),
        FAR: ("", _far(), "limit(number)", "0.0"),
    }[way]
    helpers += "" if way == NEAR else _LIMIT_HELPERS
    # The function that is called from without comes first: vispy takes the first one for it.
    prototypes = _PROTOTYPES + ("" if way == NEAR else "float limit(float number);")
    code = prototypes + _LOOK_UP.replace("FIND", find.strip()) + _HELPERS + helpers
    return code.replace("CASING", casing).replace("LIMIT", limit)


def needed(way: str) -> frozenset[str]:
    """Return the names of what a program needs to know."""
    return frozenset(re.findall(r"\$(\w+)", program(way)))


def standalone(way: str) -> str:
    """Return the same as a part of a shader that compiles by itself."""
    uniforms = "\n".join(f"uniform {kind} u_{name};" for name, kind in UNIFORMS.items())
    return "#version 120\n" + uniforms + re.sub(r"\$(\w+)", r"u_\1", program(way))


def _between() -> str:
    places = [[f"vec2({x}.0, {y}.0)" for x in (-1, 0, 1)] for y in (-1, 0, 1)]
    rows = ", ".join(f"texture2D($texture, c + one * {place}).r" for row in places for place in row)
    inside = ", ".join(f"vec3(equal(nine[{j}], vec3(label)))" for j in range(3))
    return _BETWEEN_FIND.replace("ROWS", rows).replace("INSIDE", inside)


def _far() -> str:
    angles = [2 * math.pi * (k + 0.25) / _CIRCLE for k in range(_CIRCLE)]
    circle = "\n        ".join(_FAR_PLACE.format(x=math.cos(a), y=math.sin(a)) for a in angles)
    return _FAR_FIND.replace("CIRCLE", circle).replace("COUNT", f"{_CIRCLE}.0")
