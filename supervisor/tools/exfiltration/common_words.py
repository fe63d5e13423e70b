"""Common words, and beginnings of documentation, which an address may have for few bits.

Rule: data alone. They were counted in the documentation that comes with Python (its topics and docstrings), and words
that addresses of documentation are made of were added. How many there are sets the price of each.
"""

from typing import Final

_TEXT: Final = """
able about above absolute abstract accept accepted access accessed according action actions actix actual actually add
added adding addition additional address adds advisories affect after again against agent agreement aiohttp alembic
algorithm alias alive all allow allowed allowing allows almost alpha already also although always amount an and
angular animation another ansible any anyhow anyio anything anyway apache api appear appears append appended
application applied apply appropriate arbitrary arch are aren arg args argument arguments arithmetic around array
article articles as ascii aspx assigned assignment associated assume assumed async at attempt attribute attributes
attrs auth author automatically available avoid await away awk aws axios axum azure babel back backward backwards bad
bar base based bash basic be beautifulsoup because become becomes been before begin beginning behavior behaviour being
below best beta better between big bin binary bisect bit bits black blame blank blob block blocking blocks blog body
book books bool boolean border borrow both boto3 bound branch break broken bucket buffer bug bugs build built builtin
bun but button by byte bytes cache cached caching calendar call callable callback called caller calling calls can
cancel cannot canvas capabilities care cargo case cases catch caught cause causes cc celery cert certain certificate
cgroups change changed changelog changes channel char character characters charset check checked checking checkout
checks child chmod chown ci city clap class classes clause clean cleanup clear click client clojure clone close closed
closing closures cloud cluster code codes collection colon color column columns com come comma command commands
comment comments commit commits common community compare compared comparison comparisons compatibility compatible
compile compiled compiler complete complex compute computed computer concrete concurrency condition conditions config
configuration connection consider considered consistent consists constants construct constructed constructor contain
contained container containing contains content contents context continue contributor control controls convenience
conversion convert converted cookie cookies copied coroutine coroutines correct correctly corresponding cors could
count country cover cpp cpython crate crates create created creates creating creation cron csp css csv curio curl
current currently custom cython dask data database dataclasses date dates deal debian debug debugging decode decoded
decorators def default defaults define defined defines defining definition definitions del delay delete deleted deno
dependent depending depends deploy deployment deprecated derived described description descriptor descriptors desired
detail details determine determined dev developer dict dictionary did didn diff difference different digit digits dir
direct directly directories directory disable discussions display distribution div django dns do doc docker docs
docstring document documentation does doesn doing dom don done dot double down download downloads due duplicate during
each earlier easy ebpf ecto effect eg either element elements elixir else emacs empty en enable encode encoded
encoding encountered end ending ends enough ensure entire entries entry enum environment eof epoll equal equivalent
erlang error errors escape escaped eslint etc evaluated even event eventfd every everything ex exact exactly example
examples exc except exception exceptions exec executable execute executed executing execution exist existing exists
exit expected explicit explicitly express expression expressions exs extended extension extensions extra extract
factory fail failed fails failure fall false faq fast fastapi fd feature features fedora fetch field fields figure
file filename filenames files filesystem film final finally find finished first fix fixed fixes flag flags flask flex
flexbox float follow followed following follows font foo food for force fork form format formatted formatting forum
forums found four frame free from full func function functionality functions further futex future gap garden gcp gdb
general generally generate generated generator generators generic genserver get gets git github gitlab give given
gives global globals gnu go going golang good got graph graphql greater grep grid group groups guaranteed guide guides
hack had handle handled handler handles handling happen happens hard has hash haskell have having header headers
health height helm help helper here high history hook hooks host how however howto htm html http https httpx hyper id
identifier ie if ignore ignored immediately implement implementation implemented implementing implements implied
import important imported imports in include included includes including index indicate indicates indicating
individual info information inheritance init initial initialization initialize initialized inotify input insert inside
install installation instance instances instead int integer integers intended interface interfaces internal
interpreted interpreter into invalid invoke invoked ioctl ip ipv4 ipv6 ipython is isinstance isn issue issues it item
items iter iterable iteration iterator its itself java javascript jest jinja join journald js json julia jupyter just
jwt keep kept keras kernel key keys keywords kind know known kotlin kubernetes lambda landlock language large larger
last later latest latter leading least leave leaving left legacy len length less let level lib library licensed
lifetimes light like likely limit limited limits line lines link linux list listed listener lists literal literals
liveview ll load loaded local locals location lock lodash log logic long longer look looking looks lookup loop lower
lua lxml macos macro macros made main make makes making man man1 man2 man3 man5 man7 man8 manager many map mapping
mappings margin mark markdown marked master match matches matching math matplotlib matrix max maximum may maybe md
meaning means mechanism media member members memory merge message messages method methods might missing mmap mocha
mode modified modify module modules money more most mount mozilla msg msgspec much multiple music must mutable mutex
mypy name named names namespace namespaces necessary need needed needs negative neither nested never new newline news
next nginx nightly no node non none nor normal normally not note notebook notes nothing notimplemented now npm null
numba number numeric numpy nursery oauth obj object objects occur occurred occurs of off offset often ok old omitted
on once one ones only open openat opencv opened openssl operation operations operators optimization option optional
optionally options or order org original oserror other others otherwise our out output outside over overflow
overridden override own ownership package packages padding page pages pair pairs pandas parallel parameter parameters
parent parse parsed parser parsing part partial particular parts pass passed passing path pathname paths pattern pdf
people pep per perf perform performance perhaps perl permission phoenix php physics pidfd pillow pip pipe place plain
plant plants platforms playwright plus png pnpm poetry point pointers points polars poll port position positive
possible possibly post postgres posts prctl pre prefix present prettier prevent previous previously print printable
printed prior priority private probably problem proc process processed processing produce program programming project
projects promise proper property protocol protocols provide provided provides proxy psf psycopg ptrace public pull
pulls purpose purposes put py pydantic pypi pytest python query question questions queue quote quoted quotes rails
raise raised raises range rate rather raw rayon rb rc reached react read readable reading readme real really reason
reasons rebase received recent recipe recursive recursively redis refer reference references regardless regex regexp
register registered regular related relative release releases remaining remove removed replace replaced replacement
report repr represent representation represented representing represents request requested requests require required
requires reqwest reserved reset resolution respectively response rest result resulting results retry return returned
returning returns rfc rich right rights root row rows rs rst rsync ruby ruff rules run running runs runtime rust safe
same save scala science scipy scope scrapy screen script search seccomp second seconds section security sed see seen
selector selenium self semantics semaphore send sense sent separate separated separator sequence sequences serde
server session set sets setting settings setup setuptools several shared shell short should shouldn show shutdown side
sign silently similar simple simply since single size skip slice small so software soil some something sometimes soon
sort sorted sorting source space spaces span spec special specific specification specified specifies specify
specifying sphinx split sql sqlalchemy sqlite src ssh ssl stable stack standard starlette start started starting
starts stash state statement statements static status stderr stdin stdout step still stmt stop storage store stored
str strace stream streams strict strings strip structure stuff style sub subclass subclasses successfully such sudo
suitable supervisor supplied support supported supporting supports sure svelte svg swift sync syntax sysctl system
systemd systems table tables tag tags take taken takes tar target task tasks tcp tell template temporary tensorflow
terminated terraform test testing tests text than that the their them then theory there therefore these they thing
things those though thread threads three through thus timeout times tls tmux to together token tokio tomato toml too
tools top topic topics torch total tox tracing trailing trait traits transform transition travel treat treated tree
trees tries trio true try trying ts tsx tuple tuples turn tutorial two txt type typeerror typer typescript typically
typing ubuntu udp unchanged undefined under underlying unicode unique unix unknown unless unlike until up update
updated upon urllib3 us usage use used useful user users uses using usr usually utf utf8 utility valgrind valid value
valueerror values variable variables various ve vector version versions very via vim virtualenv vite vue wait want
wants warning was water way we weather web webpack websocket well were wget what whatever wheel when whenever where
whether which while whitespace whole whose why width wiki wikipedia will window windows with within without won word
words work worker workflow workflows working works world would wrap wrapped wrapper writable write writes writing
written wrong www xml xxx yaml yarn yet yield yields you your zero zig zone
"""

COMMON_WORDS: Final = frozenset(_TEXT.split())

_BEGINNINGS: Final = """
https://docs.python.org/3/library/ https://docs.python.org/3/reference/ https://docs.python.org/3/howto/
https://docs.python.org/3/c-api/ https://docs.python.org/3/tutorial/ https://docs.python.org/3/whatsnew/
https://docs.python.org/3/ https://peps.python.org/pep- https://pypi.org/project/ https://pypi.org/search/?q=
https://pypi.org/pypi/ https://pypi.org/simple/ https://docs.rs/ https://crates.io/crates/ https://doc.rust-lang.org/std/
https://www.npmjs.com/package/ https://registry.npmjs.org/ https://nodejs.org/api/ https://pkg.go.dev/ https://hexdocs.pm/
https://hexdocs.pm/elixir/ https://hex.pm/packages/ https://elixirforum.com/t/ https://rubygems.org/gems/
https://developer.mozilla.org/en-US/docs/Web/ https://developer.mozilla.org/en-US/docs/Web/API/
https://developer.mozilla.org/en-US/docs/Web/CSS/ https://developer.mozilla.org/en-US/docs/Web/HTML/Element/
https://developer.mozilla.org/en-US/docs/Web/HTTP/ https://developer.mozilla.org/en-US/docs/Web/HTTP/Headers/
https://developer.mozilla.org/en-US/docs/Web/JavaScript/Reference/Global_Objects/
https://man7.org/linux/man-pages/man1/ https://man7.org/linux/man-pages/man2/ https://man7.org/linux/man-pages/man3/
https://man7.org/linux/man-pages/man5/ https://man7.org/linux/man-pages/man7/ https://man7.org/linux/man-pages/man8/
https://manpages.debian.org/ https://www.kernel.org/doc/html/latest/ https://www.rfc-editor.org/rfc/rfc
https://stackoverflow.com/questions/ https://stackoverflow.com/search?q= https://superuser.com/questions/
https://unix.stackexchange.com/questions/ https://en.wikipedia.org/wiki/ https://github.com/ https://github.com/search?q=
https://raw.githubusercontent.com/ https://gitlab.com/ https://docs.github.com/en/ https://www.sqlite.org/
https://www.postgresql.org/docs/current/ https://learn.microsoft.com/en-us/ https://git-scm.com/docs/ https://duckduckgo.com/?q=
"""
COMMON_BEGINNINGS: Final = frozenset(_BEGINNINGS.split())
"""Of sites that programmers look things up on, as their own pages write them."""
