"""Colours as style sheets write them, in red, green, blue and how opaque they are. Pure.

Rule: every notation of CSS Color 4 is understood, those of device-independent spaces by their lightness alone: what
matters is whether one can be read upon another. What is no colour is None.
"""

import colorsys
import re
from typing import Final, NamedTuple

_TABLE: Final = (
    "aliceblue:f0f8ff antiquewhite:faebd7 aqua:00ffff aquamarine:7fffd4 azure:f0ffff beige:f5f5dc bisque:ffe4c4 "
    "black:000000 blanchedalmond:ffebcd blue:0000ff blueviolet:8a2be2 brown:a52a2a burlywood:deb887 "
    "cadetblue:5f9ea0 chartreuse:7fff00 chocolate:d2691e coral:ff7f50 cornflowerblue:6495ed cornsilk:fff8dc "
    "crimson:dc143c cyan:00ffff darkblue:00008b darkcyan:008b8b darkgoldenrod:b8860b darkgray:a9a9a9 "
    "darkgreen:006400 darkgrey:a9a9a9 darkkhaki:bdb76b darkmagenta:8b008b darkolivegreen:556b2f darkorange:ff8c00 "
    "darkorchid:9932cc darkred:8b0000 darksalmon:e9967a darkseagreen:8fbc8f darkslateblue:483d8b "
    "darkslategray:2f4f4f darkslategrey:2f4f4f darkturquoise:00ced1 darkviolet:9400d3 deeppink:ff1493 "
    "deepskyblue:00bfff dimgray:696969 dimgrey:696969 dodgerblue:1e90ff firebrick:b22222 floralwhite:fffaf0 "
    "forestgreen:228b22 fuchsia:ff00ff gainsboro:dcdcdc ghostwhite:f8f8ff gold:ffd700 goldenrod:daa520 "
    "gray:808080 green:008000 greenyellow:adff2f grey:808080 honeydew:f0fff0 hotpink:ff69b4 indianred:cd5c5c "
    "indigo:4b0082 ivory:fffff0 khaki:f0e68c lavender:e6e6fa lavenderblush:fff0f5 lawngreen:7cfc00 "
    "lemonchiffon:fffacd lightblue:add8e6 lightcoral:f08080 lightcyan:e0ffff lightgoldenrodyellow:fafad2 "
    "lightgray:d3d3d3 lightgreen:90ee90 lightgrey:d3d3d3 lightpink:ffb6c1 lightsalmon:ffa07a lightseagreen:20b2aa "
    "lightskyblue:87cefa lightslategray:778899 lightslategrey:778899 lightsteelblue:b0c4de lightyellow:ffffe0 "
    "lime:00ff00 limegreen:32cd32 linen:faf0e6 magenta:ff00ff maroon:800000 mediumaquamarine:66cdaa "
    "mediumblue:0000cd mediumorchid:ba55d3 mediumpurple:9370db mediumseagreen:3cb371 mediumslateblue:7b68ee "
    "mediumspringgreen:00fa9a mediumturquoise:48d1cc mediumvioletred:c71585 midnightblue:191970 mintcream:f5fffa "
    "mistyrose:ffe4e1 moccasin:ffe4b5 navajowhite:ffdead navy:000080 oldlace:fdf5e6 olive:808000 olivedrab:6b8e23 "
    "orange:ffa500 orangered:ff4500 orchid:da70d6 palegoldenrod:eee8aa palegreen:98fb98 paleturquoise:afeeee "
    "palevioletred:db7093 papayawhip:ffefd5 peachpuff:ffdab9 peru:cd853f pink:ffc0cb plum:dda0dd "
    "powderblue:b0e0e6 purple:800080 rebeccapurple:663399 red:ff0000 rosybrown:bc8f8f royalblue:4169e1 "
    "saddlebrown:8b4513 salmon:fa8072 sandybrown:f4a460 seagreen:2e8b57 seashell:fff5ee sienna:a0522d "
    "silver:c0c0c0 skyblue:87ceeb slateblue:6a5acd slategray:708090 slategrey:708090 snow:fffafa "
    "springgreen:00ff7f steelblue:4682b4 tan:d2b48c teal:008080 thistle:d8bfd8 tomato:ff6347 turquoise:40e0d0 "
    "violet:ee82ee wheat:f5deb3 white:ffffff whitesmoke:f5f5f5 yellow:ffff00 yellowgreen:9acd32"
)
"""CSS Color 4, section 6.1."""
_NAMES: Final = dict(each.split(":") for each in _TABLE.split())
_SYSTEM: Final = {"canvas": "ffffff", "field": "ffffff", "canvastext": "000000", "fieldtext": "000000"}
_FUNCTION: Final = re.compile(r"(rgba?|hsla?|hwb|(?:ok)?lab|(?:ok)?lch|color)\(([^()]{0,200})\)?")
_NUMBER: Final = re.compile(r"([-+]?[0-9]{0,9}\.?[0-9]{1,9}(?:e[-+]?[0-9]{1,2})?)(%|deg|turn|rad|grad)?|none")
_HEX: Final = re.compile("#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})(?![0-9a-f])")
_WORD: Final = re.compile("(?<![a-z0-9-])[a-z]{3,20}(?![a-z0-9(-])")
_TURN: Final = {"deg": 1 / 360, "turn": 1.0, "rad": 1 / 6.283185307, "grad": 1 / 400, "": 1 / 360}
_FULL: Final = 255


class Colour(NamedTuple):
    """Channels from 0 to 1."""

    red: float
    green: float
    blue: float
    opaque: float = 1.0

    def over(self, other: "Colour") -> "Colour":
        """Return what is seen where this lies over another."""
        mixed = (mine * self.opaque + its * (1 - self.opaque) for mine, its in zip(self[:3], other[:3], strict=True))
        return Colour(*mixed)

    @property
    def luminance(self) -> float:
        """The relative luminance of WCAG 2."""
        red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in self[:3])  # noqa: PLR2004
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue


BLACK: Final = Colour(0, 0, 0)
WHITE: Final = Colour(1, 1, 1)


def contrast(one: Colour, other: Colour) -> float:
    """Return the contrast of WCAG 2: from 1, the same, to 21."""
    low, high = sorted((one.luminance, other.luminance))
    return (high + 0.05) / (low + 0.05)


def colour(value: str) -> Colour | None:
    """Return the first colour in a value, in lower case; None where there is none."""
    if found := _FUNCTION.search(value):
        _, relative, origin = found[2].partition("from ")
        return colour(origin) if relative else _of_function(found[1], found[2])
    if found := _HEX.search(value):
        return _of_hex(found[0][1:])
    for word in _WORD.findall(value):
        if word == "transparent":
            return Colour(0, 0, 0, 0)
        if plain := _NAMES.get(word) or _SYSTEM.get(word):
            return _of_hex(plain)
    return None


def _of_hex(digits: str) -> Colour:
    wide = digits if len(digits) >= 6 else "".join(each * 2 for each in digits)  # noqa: PLR2004
    return Colour(*(int(wide[at : at + 2], 16) / _FULL for at in range(0, len(wide), 2)))


def _of_function(name: str, inner: str) -> Colour | None:
    found = [(float(number or 0), unit) for number, unit in _NUMBER.findall(inner)]
    if len(found) < 3:  # noqa: PLR2004
        return None
    parts = [number / 100 if unit == "%" else number for number, unit in found]
    opaque = _clamped(parts[3]) if len(parts) > 3 else 1.0  # noqa: PLR2004
    first, second, third = parts[:3]
    turned = found[0][0] * _TURN.get(found[0][1], 0.0)
    match name[:3]:
        case "rgb":
            channels = [
                part if unit == "%" else part / _FULL for part, (_, unit) in zip(parts[:3], found, strict=False)
            ]
        case "hsl":
            channels = list(colorsys.hls_to_rgb(turned % 1, _share(found[2]), _share(found[1])))
        case "hwb":
            white, black = _share(found[1]), _share(found[2])
            channels = [each * max(0.0, 1 - white - black) + white for each in colorsys.hsv_to_rgb(turned % 1, 1, 1)]
        case "col":
            channels = [first, second, third]
        case "okl":
            channels = [_gray(_clamped(first) ** 3)] * 3
        case _:
            light = first if found[0][1] == "%" else first / 100
            channels = [_gray((((light * 100) + 16) / 116) ** 3 if light > 0.08 else light / 9.033)] * 3  # noqa: PLR2004
    red, green, blue = map(_clamped, channels)
    return Colour(red, green, blue, opaque)


def _share(found: tuple[float, str]) -> float:
    return _clamped(found[0] / 100)


def _gray(linear: float) -> float:
    return linear * 12.92 if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055  # noqa: PLR2004


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))
