"""Objects that tests judge."""

from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.object_identity import Fingerprint, Subject

CLASSES = ("Epithelial", "Lymphocyte")


def subject(
    number: int = 1,
    *,
    region: str = "R_1",
    team: str = "T",
    side: Side = Side.REFERENCE,
    class_name: str = "Lymphocyte",
    y: float | None = None,
    x: float = 10.0,
    area: int = 80,
) -> Subject:
    """Describe an object; each number stands for another place."""
    place = Fingerprint(class_name, 20.0 * number if y is None else y, x, area)
    return Subject(team=team, region=region, side=side, object_id=number, fingerprint=place)
