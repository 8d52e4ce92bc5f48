"""How the patient is read from the name of a region or frame."""

from __future__ import annotations

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.patterns import Pattern, name_expression


class PatientPattern:
    """Finds the patient in a name.

    Parameters
    ----------
    text
        Such as ``{patient}_*``, which has to fit the whole name.

    Raises
    ------
    CohortError
        If it is no pattern of one name with the placeholder ``{patient}`` alone.
    """

    def __init__(self, text: str) -> None:
        # A regular expression is refused here: as a path it would get a message about paths.
        pattern = Pattern(text) if "{patient}" in text else None
        if pattern is None or pattern.fields != {"patient"} or len(pattern.parts) != 1:
            raise CohortError(
                "files.patient must be the pattern of a name with the placeholder {patient} alone, "
                f"found '{text}'; write a pattern such as {{patient}}_* or {{patient}}-*"
            )
        self._expression = name_expression(text)

    def patient_in(self, name: str) -> str | None:
        """Return the patient in a name, or None if the name does not fit."""
        fit = self._expression.fullmatch(name)
        return fit["f_patient"] if fit else None


def patient_in(name: str, pattern: PatientPattern | None) -> str:
    """Return the patient in a name: by a pattern, else what precedes the last ``_``."""
    patient = pattern.patient_in(name) if pattern is not None else None
    return patient or name.rpartition("_")[0] or name
