"""What people do not see of a page is not read to a model, whichever way the page is converted."""

from collections.abc import Callable
from typing import Final

import pytest

from workers.url import parse
from workers.web.html_to_flat_text import flat_text
from workers.web.html_to_markdown import markdown

URL: Final = parse("https://hexdocs.pm/page")
CONVERTERS: Final[dict[str, Callable[[str], tuple[str, str]]]] = {
    "markdown": lambda page: markdown(page, URL, 5.0),
    "flat": flat_text,
}

STYLES: Final = """
display:none|display: none !important;|DISPLAY:NONE|visibility:hidden|visibility:collapse|opacity:0|opacity:.01
opacity: 1%|font-size:0|font-size:1px|font-size:0.1em|font:0/0 a|position:absolute;left:-9999px
position:fixed;top:-1000px|position:absolute;right:-200em|margin-left:-9999px|text-indent:-9999px|text-indent:-999em
clip:rect(0,0,0,0);position:absolute|clip:rect(1px 1px 1px 1px)|clip-path:inset(50%)|clip-path:circle(0)
width:0;height:0;overflow:hidden|max-height:0;overflow:hidden|height:1px;width:1px;overflow:clip|color:white|color:#fff
color:#fefefe|color:rgb(255,255,255)|color:rgb(100% 100% 100% / 1)|color:hsl(0 0% 100%)|color:rgba(0,0,0,0)
color:transparent|color:hwb(0 100% 0%)|color:lab(100% 0 0)|color:oklch(1 0 0)|color:color(srgb 1 1 1)
background:#000;color:black|background-color:navy;color:#000081|color:snow|background:currentcolor
transform:scale(0)|transform:translateX(-9999px)|filter:opacity(0)|content-visibility:hidden|disp\\6c ay:none
--c:#fff;color:var(--c)|color:var(--none, white)|-webkit-text-fill-color:transparent|zoom:.01
transform:matrix(1,0,0,1,-9999,0)|transform:matrix(0,0,0,0,0,0)|transform:rotateX(90deg)|filter:blur(50px)
filter:contrast(0)|clip-path:inset(9999px)|clip-path:xywh(0 0 0 0)|max-block-size:0;overflow:hidden
inline-size:0;overflow:clip|height:0;contain:paint|margin-inline-start:-9999px|position:absolute;inset-block-start:-99em
position:absolute;inset-inline:-9999px|padding-inline-start:9999px|padding-top:9999px
letter-spacing:-1em|color:rgb(from white r g b)|/**/display/**/:/**/none
"""

RULES: Final = [
    (".x{display:none}", '<p class="a x">HIDDEN</p>'),
    ("#i , .z {opacity:0}", '<p id="i">HIDDEN</p>'),
    ("article p{font-size:0}", "<article><div><p>HIDDEN</p></div></article>"),
    ("p > b{visibility:hidden}", "<p><b>HIDDEN</b></p>"),
    ("[data-x]{display:none}", "<p data-x=1>HIDDEN</p>"),
    ("[class^='ab'] {display:none}", '<p class="abc">HIDDEN</p>'),
    ("body{background:#123456} .x{color:#123457}", '<p class="x">HIDDEN</p>'),
    ("aside{display:none}", "<aside>HIDDEN</aside>"),
    ("@media screen{.x{display:none}}", '<p class="x">HIDDEN</p>'),
    ("@media (min-width:1px){.x{display:none}}", '<p class="x">HIDDEN</p>'),
    ("@supports (display:grid){.x{display:none}}", '<p class="x">HIDDEN</p>'),
    (".o{.x{display:none}}", '<div class="o"><p class="x">HIDDEN</p></div>'),
    (":is(.x,.y){display:none}", '<p class="y">HIDDEN</p>'),
    (".\\78{display:none}", '<p class="x">HIDDEN</p>'),
    ("p.a:not(.ok){display:none}", '<p class="a">HIDDEN</p>'),
    ("i:nth-child(2n){display:none}", "<p><b>t</b><i>HIDDEN</i></p>"),
    ("@media not print{.x{display:none}}", '<p class="x">HIDDEN</p>'),
    ("h2 + p{display:none}", "<h2>t</h2><p>HIDDEN</p>"),
    ('.y::before{content:"}"} .x{display:none}', '<p class="x">HIDDEN</p>'),
    (".x{display:none!important} .x{display:block}", '<p class="x" style="display:block">HIDDEN</p>'),
]

ELEMENTS: Final = [
    "<p hidden>HIDDEN</p>",
    '<p aria-hidden="true">HIDDEN</p>',
    "<noscript>HIDDEN</noscript>",
    "<template>HIDDEN</template>",
    "<datalist><option>HIDDEN</option></datalist>",
    "<ruby>a<rp>HIDDEN</rp></ruby>",
    "<!-- HIDDEN -->",
    '<font color="#ffffff">HIDDEN</font>',
    '<table bgcolor="black"><tr><td><font color=black>HIDDEN</font></td></tr></table>',
    '<div style="opacity:.2"><p style="opacity:.2">HIDDEN</p></div>',
    '<div style="display:none"><div><p style="display:block">HIDDEN</p></div></div>',
    '<div style="color:white"><p><b>HIDDEN</b></p></div>',
    '<p title=">" style="display:none">HIDDEN</p>',
    '<p style="display:none" style="display:block">HIDDEN</p>',
    "<p style='display:none'>HIDDEN<p>",
    "<!-- <style>.x{display:block!important}</style> --><style>.x{display:none}</style><i class=x>HIDDEN</i>",
    '<script>"<style>.x{display:block!important}</style>"</script><style>.x{display:none}</style><i class=x>HIDDEN</i>',
    "<i class=x>HIDDEN</i><style>.x{display:none}</style>",
]

SEEN: Final = [
    '<p style="color:#333">SEEN</p>',
    '<p style="color:white;background:#000">SEEN</p>',
    '<body style="background:#111"><p style="color:#eee">SEEN</p>',
    '<div style="visibility:hidden"><p style="visibility:visible">SEEN</p></div>',
    '<div style="color:#fff"><p style="color:#000">SEEN</p></div>',
    '<p style="font-size:80%">SEEN</p>',
    '<p style="block-size:20px;overflow:hidden;margin-inline:-20px;padding-left:30px">SEEN</p>',
    '<p style="transform:matrix(1,0,0,1,20,0);filter:blur(0px) contrast(1);contain:content">SEEN</p>',
    '<p style="position:absolute;left:50%;margin:-20px">SEEN</p>',
    '<p style="overflow:hidden;max-width:100%">SEEN</p>',
    "<style>.x:hover{display:none} .x::before{opacity:0} @media print{.x{display:none}}</style><p class=x>SEEN</p>",
    "<style>@media (max-width:600px){.x{display:none}}</style><p class=x>SEEN</p>",
    "<style>p{display:none} #i{display:block}</style><p id=i>SEEN</p>",
    "<style media=print>p{display:none}</style><p>SEEN</p>",
    "<style>@keyframes a{from{opacity:0}}</style><p>SEEN</p>",
    "<p hidden style='display:block'>SEEN</p>",
    "<p style='display:none'>x<p>SEEN</p>",
    "<p style='display:none'>x<div>SEEN</div>",
    "<style>p:not(.x){display:none} b:nth-child(2){opacity:0}</style><p class=x><b>SEEN</b></p>",
    "<ul><li style='display:none'>x<li>SEEN</ul>",
    "<a href=/x style='color:rgb(0 0 238)'>SEEN</a>",
]

STYLED: Final = [each for each in STYLES.replace("\n", "|").split("|") if each]
HIDING: Final = [
    "".join(f'<p style="{style}">HIDDEN by {style}</p>' for style in STYLED),
    "".join(each for each in ELEMENTS if "<style>" not in each),
    *(each for each in ELEMENTS if "<style>" in each),
    *(f"<style>{css}</style>{html}" for css, html in RULES),
]
COUNTS: Final = (len(STYLED), 13)
"""Parts that are counted of the first two: comments and templates are none."""


@pytest.mark.parametrize("way", CONVERTERS)
def test_what_is_hidden_is_dropped_and_counted(way: str) -> None:
    for number, html in enumerate(HIDING):
        text, note = CONVERTERS[way](f"<h1>Title</h1><p>before</p>{html}<p>after</p>")
        assert "HIDDEN" not in text, html
        assert text.startswith(("# Title\n\nbefore", "Title\n\nbefore")), html
        assert text.endswith("after"), html
        many = COUNTS[number] if number < len(COUNTS) else 1
        assert note == f"{many} hidden part{'s were' if many > 1 else ' was'} left out", html


@pytest.mark.parametrize("way", CONVERTERS)
def test_what_is_seen_stays(way: str) -> None:
    for html in SEEN:
        assert "SEEN" in CONVERTERS[way](f"<p>before</p>{html}<p>after</p>")[0], html


HOSTILE: Final = {
    "many rules": "<style>" + ".z .b .c .d .e{display:none}" * 6000 + "</style>" + '<div class="a b c d e">' * 150,
    "many open blocks": "<style>" + "@media x{" * 50_000 + "</style>",
    "one long selector": "<style>" + "a " * 50_000 + "{display:none}</style>" + "<a>" * 150,
    "many lists": "<style>" + ":is(a,b)" * 5000 + "{display:none}</style><a>x</a>",
    "nested rules": "<style>" + "a,b,c{" * 1000 + "display:none</style><a>x</a>",
    "quotes": "<style>" + "'" * 50_000 + "</style>",
    "variables": '<p style="'
    + "".join(f"--a{n}:var(--a{n + 1})var(--a{n + 1});" for n in range(500))
    + 'color:var(--a0)">',
    "open quotes": "<p a='" + '<p a="' * 9000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("way", CONVERTERS)
def test_hostile_styles_take_bounded_time(way: str, name: str) -> None:
    assert (
        "after"
        in CONVERTERS[way](HOSTILE[name] + "'\"><p>after</p>" if name == "open quotes" else HOSTILE[name] + "<p>after")[
            0
        ]
    )
