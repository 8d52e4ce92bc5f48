"""Functions for the graphics card that draw outlines of labels as lines (GLSL 1.20).

The labels and their colours are on the card already. In place of napari's function that reads the
label of a screen pixel comes one that also finds how far the nearest outline is, and thus which
share of the screen pixel it covers. So the lines have the same width at every zoom, and nothing is
computed anew when the view moves or labels change.

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

NEAR_PX, BETWEEN_PX = 0.35, 1.0
"""How far from its outline, in label pixels, the first two ways see an object."""

UNIFORMS = {
    "texture": "sampler2D",  # the labels
    "sides": "sampler2D",  # 256 x 256: the shorter side of each object in label px, 255 at most
    "shape": "vec2",  # width and height of the labels
    "most": "float",  # the label that is read as 1.0
    "px": "float",  # label pixels per screen pixel
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

_CIRCLE = 8  # places on the circle

_PROTOTYPES = """
float object_half_width(float label);
vec2 shares(float far_px, float label);
float corner_distance(vec4 inside, vec2 u);
float smooth_distance(mat3 nine, float label, vec3 wx, vec3 wy, vec3 dx, vec3 dy);
"""
_HELPERS = """
float object_half_width(float label) {  // at most an eighth of its shorter side
    float number = floor(label * $most + 0.5), row = floor(number / 256.0);
    vec2 place = (vec2(number - 256.0 * row, row) + 0.5) / 256.0;
    float wanted = $half_width + $more * float(number == $selected);
    return min(wanted, 255.0 * texture2D($sides, place).r / 8.0 / $px);
}
float covered(float far, float half_width) {  // share of a screen pixel at a distance from a line
    return clamp(min(half_width, far + 0.5) - max(-half_width, far - 0.5), 0.0, 1.0);
}
vec2 shares(float far_px, float label) {  // that a line and its casing cover, the line included
    float far = abs(far_px) / $px, half_width = object_half_width(label);
    return vec2(covered(far, half_width), covered(far, half_width + CASING));
}
"""
_LOOK_UP = """
vec4 outline_lookup(vec2 texcoord) {
    if (texcoord.x < 0.0 || texcoord.x > 1.0 || texcoord.y < 0.0 || texcoord.y > 1.0) discard;
    vec2 p = texcoord * $shape, one = 1.0 / $shape;
    float own = texture2D($texture, texcoord).r;  // the object here, and one beside it
    float other = 0.0;
    float own_far = 99.0, other_far = 99.0;  // from their outlines in label px; negative: inside
    {
        FIND
    }
    vec2 found = own > 0.0 ? shares(own_far, own) : vec2(0.0);
    float label = own;
    if (other > 0.0) {
        vec2 theirs = shares(other_far, other);
        if (theirs.x > found.x + 0.02 || theirs.y > found.y + 0.02 ||
            (theirs.x > 0.0 && other_far < 0.0)) { found = theirs; label = other; }
    }
    if (found.y <= 0.0) discard;
    return vec4(label, found, 1.0);
}
"""

_NEAR_HELPERS = """
float corner_distance(vec4 inside, vec2 u) {  // from the line around the corners that are inside
    float n = dot(inside, vec4(1.0));
    if (n > 1.5 && n < 2.5) {
        if (inside.x == inside.y) return inside.x > 0.0 ? u.y - 0.5 : 0.5 - u.y;
        if (inside.x == inside.z) return inside.x > 0.0 ? u.x - 0.5 : 0.5 - u.x;
    }
    vec4 cut = vec4(u.x + u.y, 1.0 - u.x + u.y, 1.0 + u.x - u.y, 2.0 - u.x - u.y);
    cut = (cut - 0.5) * 0.70710678 + 9.0 * (n > 2.5 ? inside : 1.0 - inside);
    float nearest = min(min(cut.x, cut.y), min(cut.z, cut.w));
    return n > 2.5 ? -nearest : nearest;
}
"""
_NEAR_FIND = """
        vec2 at = floor(p - 0.5), u = p - 0.5 - at, c = (at + 0.5) * one;
        vec4 four = vec4(
            texture2D($texture, c).r, texture2D($texture, c + one * vec2(1.0, 0.0)).r,
            texture2D($texture, c + one * vec2(0.0, 1.0)).r, texture2D($texture, c + one).r);
        vec2 v = 1.0 - u;
        vec4 away = vec4(dot(u, u), v.x * v.x + u.y * u.y, u.x * u.x + v.y * v.y, dot(v, v));
        float nearest = 9.0;
        NEIGHBOURS
        own_far = corner_distance(vec4(equal(four, vec4(own))), u);
        if (other > 0.0) other_far = corner_distance(vec4(equal(four, vec4(other))), u);
"""
_NEAR_NEIGHBOUR = (
    "if (four.{i} > 0.0 && four.{i} != own && away.{i} < nearest)"
    " {{ nearest = away.{i}; other = four.{i}; }}"
)

_BETWEEN_HELPERS = """
float smooth_distance(mat3 nine, float label, vec3 wx, vec3 wy, vec3 dx, vec3 dy) {
    // From the 0.5 level of an object that was smoothed: its height is a square of the distance.
    vec3 a = vec3(equal(nine[0], vec3(label))), b = vec3(equal(nine[1], vec3(label)));
    vec3 c = vec3(equal(nine[2], vec3(label)));
    vec3 rows = vec3(dot(a, wx), dot(b, wx), dot(c, wx));
    vec2 slope = vec2(dot(vec3(dot(a, dx), dot(b, dx), dot(c, dx)), wy), dot(rows, dy));
    float height = dot(rows, wy) - 0.5, s = sqrt(max(1.0 - 2.0 * abs(height), 0.0001));
    return -sign(height) * (1.0 - s) / max(length(slope) / s, 0.35);
}
"""
_BETWEEN_FIND = """
        vec2 f = fract(p) - 0.5, c = texcoord - f * one;
        vec3 wx = vec3(0.5 * (0.5 - f.x) * (0.5 - f.x), 0.75 - f.x * f.x,
                       0.5 * (0.5 + f.x) * (0.5 + f.x));
        vec3 wy = vec3(0.5 * (0.5 - f.y) * (0.5 - f.y), 0.75 - f.y * f.y,
                       0.5 * (0.5 + f.y) * (0.5 + f.y));
        vec3 dx = vec3(f.x - 0.5, -2.0 * f.x, f.x + 0.5);
        vec3 dy = vec3(f.y - 0.5, -2.0 * f.y, f.y + 0.5);
        mat3 nine = mat3(ROWS);
        vec3 here = vec3(own);
        if (any(notEqual(nine[0], here)) || any(notEqual(nine[1], here))
            || any(notEqual(nine[2], here))) {
            float weight, largest = 0.0;
            NEIGHBOURS
            own_far = smooth_distance(nine, own, wx, wy, dx, dy);
            if (other > 0.0) other_far = smooth_distance(nine, other, wx, wy, dx, dy);
        }
"""
_BETWEEN_NEIGHBOUR = (
    "weight = wx.{x} * wy.{y}; if (nine[{j}].{x} > 0.0 && nine[{j}].{x} != own && weight > largest)"
    " {{ largest = weight; other = nine[{j}].{x}; }}"
)

_FAR_FIND = """
        float reach = own > 0.0 ? object_half_width(own) : $half_width + $more;
        reach = max(reach, 0.5) + 0.5;
        float same = 0.0, theirs = 0.0, s;
        vec2 by = reach * $px * one;
        CIRCLE
        if (own > 0.0) {
            if (same < COUNT) own_far = reach * $px * cos(3.14159265 * (1.0 - same / COUNT));
            other = 0.0;
        } else if (other > 0.0) {
            other_far = reach * $px * cos(3.14159265 * min(theirs / COUNT, 0.5));
        }
        own_far = max(own_far, 0.0);
"""
_FAR_PLACE = (
    "s = texture2D($texture, texcoord + by * vec2({x:.4f}, {y:.4f})).r; same += float(s == own);"
    " if (s > 0.0 && s != own) {{ theirs += 1.0; other = s; }}"
)


def program(way: str) -> str:
    """Return the functions of a way to find outlines, with ``$`` before what they need to know."""
    helpers, find = {
        NEAR: (_NEAR_HELPERS, _near()),
        BETWEEN: (_BETWEEN_HELPERS, _between()),
        FAR: ("", _far()),
    }[way]
    # The function that is called from without comes first: vispy takes the first one for it.
    code = _PROTOTYPES + _LOOK_UP.replace("FIND", find.strip()) + _HELPERS + helpers
    return code.replace("CASING", "0.0" if way == FAR else "min($casing, half_width)")


def needed(way: str) -> frozenset[str]:
    """Return the names of what a program needs to know."""
    return frozenset(re.findall(r"\$(\w+)", program(way)))


def standalone(way: str) -> str:
    """Return the same as a part of a shader that compiles by itself."""
    uniforms = "\n".join(f"uniform {kind} u_{name};" for name, kind in UNIFORMS.items())
    return "#version 120\n" + uniforms + re.sub(r"\$(\w+)", r"u_\1", program(way))


def _near() -> str:
    neighbours = "\n        ".join(_NEAR_NEIGHBOUR.format(i=i) for i in "xyzw")
    return _NEAR_FIND.replace("NEIGHBOURS", neighbours)


def _between() -> str:
    places = [[f"vec2({x}.0, {y}.0)" for x in (-1, 0, 1)] for y in (-1, 0, 1)]
    rows = ", ".join(f"texture2D($texture, c + one * {place}).r" for row in places for place in row)
    neighbours = "\n            ".join(
        _BETWEEN_NEIGHBOUR.format(x=x, y=y, j=j)
        for j, y in enumerate("xyz")
        for x in "xyz"
        if (j, x) != (1, "y")
    )
    return _BETWEEN_FIND.replace("ROWS", rows).replace("NEIGHBOURS", neighbours)


def _far() -> str:
    angles = [2 * math.pi * (k + 0.25) / _CIRCLE for k in range(_CIRCLE)]
    circle = "\n        ".join(_FAR_PLACE.format(x=math.cos(a), y=math.sin(a)) for a in angles)
    return _FAR_FIND.replace("CIRCLE", circle).replace("COUNT", f"{_CIRCLE}.0")
