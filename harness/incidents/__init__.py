"""What happened on a platform, from its log: entries in, a time-line, diagnoses and a scenario out. No input or output but documents.

::

    exports      bytes to JSON objects, whatever wrote them; what is none is counted with its line
    entries      objects to entries, each once and by time
    cloud_run    the entries of an execution to its time-line
    kubernetes   those of a job on a cluster, with ``cluster_events``
    words        what lines of the job's log say
    sightings    events with their entries; unknown ones are counted
    recording    a time-line as a history
    losses       what it cost, by the ledger of a history
    conclusion   all diagnoses: ``execution_diagnoses``, ``cluster_diagnoses``, ``resumes``
    reproduction a scenario of the same timing; ``pace``, ``fault_moments``, ``cluster_reproduction``
    incident     the document
"""

from harness.incidents.entries import Export, read_export, read_values
from harness.incidents.exports import read_file, read_stream
from harness.incidents.incident import Incident, incident_of, timeline_of
from harness.incidents.reproduction import Reproduction, reproduce
from harness.incidents.words import JobWords, words_of

__all__ = [
    "Export",
    "Incident",
    "JobWords",
    "Reproduction",
    "incident_of",
    "read_export",
    "read_file",
    "read_stream",
    "read_values",
    "reproduce",
    "timeline_of",
    "words_of",
]
