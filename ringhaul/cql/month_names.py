"""Names of months and days by language, as dates show them: `9 mars 2018`, `Fr., 9. März`.

For each language: its months, their short forms, its days from Monday on, their short forms. Short
forms may end with a point in a file; they are listed without it.
"""

from __future__ import annotations

from typing import NamedTuple


class Names(NamedTuple):
    """The names of one language, in lower case and in the order of the calendar."""

    months: tuple[str, ...]
    short_months: tuple[str, ...]
    days: tuple[str, ...]  #: Monday first
    short_days: tuple[str, ...]


def _names(months: str, short_months: str, days: str, short_days: str) -> Names:
    return Names(*(tuple(words.split()) for words in (months, short_months, days, short_days)))


NAMES: dict[str, Names] = {
    "en": _names(
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "monday tuesday wednesday thursday friday saturday sunday",
        "mon tue wed thu fri sat sun",
    ),
    "fr": _names(
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "janv févr mars avr mai juin juil août sept oct nov déc",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "lun mar mer jeu ven sam dim",
    ),
    "de": _names(
        "januar februar märz april mai juni juli august september oktober november dezember",
        "jan feb mär apr mai jun jul aug sep okt nov dez",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "mo di mi do fr sa so",
    ),
    "es": _names(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ene feb mar abr may jun jul ago sept oct nov dic",
        "lunes martes miércoles jueves viernes sábado domingo",
        "lun mar mié jue vie sáb dom",
    ),
    "it": _names(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
        "dicembre",
        "gen feb mar apr mag giu lug ago set ott nov dic",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "lun mar mer gio ven sab dom",
    ),
    "pt": _names(
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "jan fev mar abr mai jun jul ago set out nov dez",
        "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
        "seg ter qua qui sex sáb dom",
    ),
    "nl": _names(
        "januari februari maart april mei juni juli augustus september oktober november december",
        "jan feb mrt apr mei jun jul aug sep okt nov dec",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        "ma di wo do vr za zo",
    ),
    "sv": _names(
        "januari februari mars april maj juni juli augusti september oktober november december",
        "jan feb mars apr maj juni juli aug sep okt nov dec",
        "måndag tisdag onsdag torsdag fredag lördag söndag",
        "mån tis ons tors fre lör sön",
    ),
    "da": _names(
        "januar februar marts april maj juni juli august september oktober november december",
        "jan feb mar apr maj jun jul aug sep okt nov dec",
        "mandag tirsdag onsdag torsdag fredag lørdag søndag",
        "man tir ons tor fre lør søn",
    ),
    "pl": _names(
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października "
        "listopada grudnia",
        "sty lut mar kwi maj cze lip sie wrz paź lis gru",
        "poniedziałek wtorek środa czwartek piątek sobota niedziela",
        "pon wt śr czw pt sob niedz",
    ),
}


def language_of(locale: str) -> str | None:
    """Return the language of a locale such as `fr`, `fr_FR` or `fr-CA`, if it is in `NAMES`."""
    language = locale.replace("-", "_").split("_")[0].lower()
    return language if language in NAMES else None
