"""The states of the USA and their abbreviations, in small letters."""

from typing import Final

_LISTED: Final = (
    "alabama: al, alaska: ak, arizona: az, arkansas: ar, california: ca, colorado: co, connecticut: ct, delaware: de, "
    "florida: fl, georgia: ga, hawaii: hi, idaho: id, illinois: il, indiana: in, iowa: ia, kansas: ks, kentucky: ky, "
    "louisiana: la, maine: me, maryland: md, massachusetts: ma, michigan: mi, minnesota: mn, mississippi: ms, "
    "missouri: mo, montana: mt, nebraska: ne, nevada: nv, new hampshire: nh, new jersey: nj, new mexico: nm, "
    "new york: ny, north carolina: nc, north dakota: nd, ohio: oh, oklahoma: ok, oregon: or, pennsylvania: pa, "
    "rhode island: ri, south carolina: sc, south dakota: sd, tennessee: tn, texas: tx, utah: ut, vermont: vt, "
    "virginia: va, washington: wa, west virginia: wv, wisconsin: wi, wyoming: wy, district of columbia: dc"
)
ABBREVIATIONS: Final = dict(entry.split(": ") for entry in _LISTED.split(", "))


def abbreviated(text: str) -> str:
    """Return the abbreviation of a state's name, and any other text as it is."""
    return ABBREVIATIONS.get(text, text)
