"""Themes: what each tone looks like on a terminal. Pure.

Rule: a theme is a table from tones to words; a tone that it does not have is as its name says. Colours are the
terminal's own sixteen, which people have chosen to be readable.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

_COLOURS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_WEIGHTS: Final[Mapping[str, str]] = {"bold": "1", "dim": "2", "underline": "4", "reverse": "7"}
CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **_WEIGHTS,
        **{colour: str(30 + number) for number, colour in enumerate(_COLOURS)},
        **{f"bright-{colour}": str(90 + number) for number, colour in enumerate(_COLOURS)},
    }
)
"""What a tone can look like: words, and the terminal's codes for them."""
TONES: Final = ("bold", "dim", "reverse", "red", "green", "yellow", "blue", "magenta", "cyan")
"""The tones that texts are written in."""


class ThemeError(ValueError):
    """A table is no theme: `key` is what is wrong, the text is a clause about it."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(why)
        self.key = key


class ToneTable(NamedTuple):
    """A theme."""

    name: str
    tones: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    light: bool = False
    """Whether it is for a light background."""

    def words(self, tone: str) -> tuple[str, ...]:
        """Return what several tones, one beside the other, look like."""
        return tuple(word for each in tone.split() for word in self.tones.get(each, (each,)))

    def codes(self, tone: str, *, colour: bool) -> str:
        """Return the terminal's codes for tones; without colour, those of weights alone."""
        return ";".join(CODES[each] for each in self.words(tone) if colour or each in _WEIGHTS)


def _bright(*tones: str) -> dict[str, tuple[str, ...]]:
    return {tone: ("bold", f"bright-{tone}") for tone in tones}


DARK: Final = ToneTable("dark")
THEMES: Final[Mapping[str, ToneTable]] = MappingProxyType(
    {
        theme.name: theme
        for theme in (
            DARK,
            ToneTable("light", {"dim": ("bright-black",), "yellow": ("magenta",), "cyan": ("blue",)}, light=True),
            ToneTable("high-contrast", {"dim": (), **_bright("red", "green", "yellow", "blue", "magenta", "cyan")}),
            ToneTable("none", {tone: () for tone in TONES if tone not in _WEIGHTS}),
        )
    }
)


def theme_of(name: str, table: Mapping[str, Any]) -> ToneTable:
    """Return the theme that a table makes: words for each tone, and `light`, whether it is for a light background.

    Raises:
        ThemeError: it is none.
    """
    tones: dict[str, tuple[str, ...]] = {}
    light = False
    for key, value in table.items():
        if key == "light":
            light = value is True
            if not isinstance(value, bool):
                raise ThemeError(key, "must be true or false")
        elif key not in TONES:
            raise ThemeError(key, f"no such tone; there are {', '.join(TONES)}, and light")
        elif not isinstance(value, str):
            raise ThemeError(key, 'must be words, such as "bold green"')
        elif wrong := next((word for word in value.split() if word not in CODES), None):
            raise ThemeError(key, f"no such word {wrong[:40]!r}; there are {', '.join(CODES)}")
        else:
            tones[key] = tuple(value.split())
    return ToneTable(name, tones, light)
