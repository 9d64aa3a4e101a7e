"""What an archive of single cells is, in a line, from its metadata alone; as the program prints it, too."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def atlas_line(info: dict[str, Any]) -> str:
    """ "1,000,000 cells × 20,000 genes, CSR float32, 1.03e9 non-zeros"; "": it is no atlas."""
    nodes = {n["path"]: n for n in info["nodes"]}
    kind = (info.get("attributes") or {}).get("encoding-type")
    if info["format"].startswith("SCDL"):
        about = info["attributes"]
        values = nodes.get("X/data") or nodes.get("chunk_00000/data") or {}
        return _words([(about.get("n_obs", 0), 0, about.get("nnz", 0), "CSR", values.get("dtype") or "?")])
    if kind == "anndata":
        return _words([_matrix(nodes, "X")])
    if kind == "annbatch-preshuffled":
        return _words([_matrix(nodes, f"{p}/X") for p in nodes if p.startswith("dataset_") and "/" not in p])
    return ""


def _matrix(nodes: dict[str, Any], path: str) -> tuple[Any, ...] | None:
    """(cells, genes, values or -1, form, type of values)."""
    x, values = nodes.get(path), nodes.get(f"{path}/data")
    about = (x or {}).get("attributes") or {}
    if values and _is_shape(about.get("shape")) and values["shape"]:
        form = "CSC" if about.get("encoding-type") == "csc_matrix" else "CSR"
        return *about["shape"], values["shape"][0], form, values["dtype"]
    if x and x["kind"] == "array" and len(x["shape"] or ()) == 2:
        return *x["shape"], -1, "dense", x["dtype"]
    return None


def _is_shape(given: Any) -> bool:
    """Attributes are whatever someone wrote."""
    return isinstance(given, list) and len(given) == 2 and all(type(n) is int for n in given)


def _words(found: list[tuple[Any, ...] | None]) -> str:
    sets = [f for f in found if f is not None]
    if not sets:
        return ""
    genes, nnz = max(s[1] for s in sets), -1 if any(s[2] < 0 for s in sets) else sum(s[2] for s in sets)
    parts = [
        f"{sum(s[0] for s in sets):,} cells" + (f" × {genes:,} genes" if genes else ""),
        f"{sets[-1][3]} {sets[-1][4]}",
    ]
    if nnz >= 0:
        parts.append(f"{_counted(nnz)} non-zeros")
    if len(sets) > 1:
        parts.append(f"in {len(sets)} data sets")
    return ", ".join(parts)


def _counted(n: int) -> str:
    if n < 10**7:
        return f"{n:,}"
    digits, _, exponent = f"{n:.2e}".partition("e")
    return f"{digits}e{int(exponent)}"
