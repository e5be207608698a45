"""What is known, or only assumed, of each storage: the rows that a model is made of.

A row is confirmed where the platform's own documents promise it, or it was measured. States that rest on another row say so
(``CrashState.assumed``); a probe on the real thing would confirm it.
"""

from dataclasses import dataclass

_SEMANTICS = "https://github.com/GoogleCloudPlatform/gcsfuse/blob/master/docs/semantics.md"
_FOLDERS = "https://cloud.google.com/storage/docs/rename-hns-folders"
_SOURCE = "read in gcsfuse's internal/fs/fs.go, never tried on a mount"


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that a storage does.

    Attributes:
        name: As reports name it.
        says: What it does.
        source: Where it is promised, or where it was seen.
        is_confirmed: Whether somebody promises it, or measured it.
    """

    name: str
    says: str
    source: str
    is_confirmed: bool


DURABLE_AT_ONCE = Row(
    "durable-at-once",
    "each operation is durable before the next one begins, so that a lost machine loses nothing",
    "no file system promises it without fsync; a mount with the options sync and dirsync comes near",
    is_confirmed=False,
)
UNORDERED_UNTIL_SYNCED = Row(
    "unordered-until-synced",
    "what was not made durable by fsync of the file, and of its directory, may be lost or torn whatever came later",
    "POSIX.1 promises no order without fsync; a journaling file system keeps more than that (kill-points F10)",
    is_confirmed=False,
)
NAMES_MOVED_IN_ARE_DURABLE = Row(
    "names-moved-in-are-durable",
    "the names in a directory that was made elsewhere and moved in had been synced there",
    "whether they were is not looked at",
    is_confirmed=False,
)

APPEARS_AT_CLOSE = Row(
    "appears-at-close",
    "a new file that is written in order is no object before it is closed; what is open when the mount dies was never there",
    _SEMANTICS,
    is_confirmed=True,
)
FSYNC_PUBLISHES_NOTHING = Row(
    "fsync-publishes-nothing", "fsync of a file that is streamed does not make it an object", _SEMANTICS, is_confirmed=True
)
CLOSED_ONCE = Row(
    "closed-once",
    "while a file is written, no other descriptor of it is closed, be it a duplicate or one that a child has inherited; each close"
    " flushes, and the mount would publish the part that there is",
    "who inherits which descriptor, and when it ends, is not seen; that each close flushes: FLUSH in fuse(4); what gcsfuse does on it"
    " was read in source, never tried on a mount",
    is_confirmed=False,
)
BLOCKS_SUFFICE = Row(
    "blocks-suffice",
    "a file that is opened while four others are streamed is streamed, too; where the mount's write-global-max-blocks is 4, as on small"
    " machines, it is staged, and fsync publishes it",
    f"an option of the mount, 1600 on large machines: {_SEMANTICS}",
    is_confirmed=False,
)
NOT_READ_BACK = Row(
    "not-read-back",
    "a file that is opened to be written and read is not read before it is closed; a read would publish it, and what is written later would"
    " be staged",
    f"reads are not seen; what they do: {_SEMANTICS}",
    is_confirmed=False,
)
STAGED_FSYNC_PUBLISHES = Row(
    "staged-fsync-publishes",
    "a file that was opened to be modified is staged; fsync and close each make it a new object as a whole",
    _SEMANTICS,
    is_confirmed=True,
)
RENAME_PUBLISHES = Row("rename-publishes", "a file that is renamed while it is streamed is published first", _SEMANTICS, is_confirmed=True)
SHRINKING_PUBLISHES = Row(
    "shrinking-publishes",
    "a file that is cut while it is streamed is published first, and staged from then on",
    _SEMANTICS,
    is_confirmed=True,
)
OUT_OF_ORDER_PUBLISHES = Row(
    "out-of-order-publishes",
    "a write out of order publishes what was streamed until then, and the file is staged from then on",
    f"that it is staged: {_SEMANTICS}; that the part is published: read in source",
    is_confirmed=False,
)
KILL_PUBLISHES = Row(
    "kill-publishes",
    "when the process is killed the kernel flushes its open files, and the mount publishes each as far as it was written",
    "the flush was measured on a FUSE mount of our own; that gcsfuse publishes on it was read in source (kill-points F9)",
    is_confirmed=False,
)
RENAME_GOES_ON = Row(
    "rename-goes-on",
    "the mount completes a rename whose caller was killed",
    "read in gcsfuse's source: it ignores interrupts",
    is_confirmed=False,
)
FILE_RENAME_IS_ATOMIC = Row(
    "file-rename-is-atomic",
    "a file is renamed in one step, by the MoveObject call, from gcsfuse 3.1 on; before, it was copied and then deleted",
    "https://newreleases.io/project/github/GoogleCloudPlatform/gcsfuse/release/v3.1.0",
    is_confirmed=True,
)
DIRECTORY_RENAME_IS_TORN = Row(
    "directory-rename-is-torn", "in a bucket without folders a directory is renamed object by object", _SEMANTICS, is_confirmed=True
)
DIRECTORY_RENAME_ORDER = Row(
    "directory-rename-order",
    "the new directory's object is made first, then objects are moved one by one, in the order of a listing; the old one's is deleted last",
    f"{_SOURCE}; it goes over a map of Go, so that the order of a listing stands for any order",
    is_confirmed=False,
)
RENAME_LIMIT_SUFFICES = Row(
    "rename-limit-suffices",
    "the mount's rename-dir-limit allows the rename; with its default of 0 the rename fails and the job sees EMFILE",
    f"an option of the mount: {_SEMANTICS}",
    is_confirmed=False,
)
FOLDER_RENAME_IS_ATOMIC = Row(
    "folder-rename-is-atomic", "in a bucket with hierarchical namespace a directory is renamed in one step", _FOLDERS, is_confirmed=True
)
DIRECTORIES_ARE_IMPLIED = Row(
    "directories-are-implied",
    "a directory whose own object is gone is still seen while objects are below it",
    f"the option implicit-dirs, off by default: {_SEMANTICS}",
    is_confirmed=False,
)
SIDECAR_LOSES_OPEN_FILES = Row(
    "sidecar-loses-open-files",
    "when the mount's own process dies alone, what it has not published is lost, and the job sees I/O errors",
    "https://github.com/GoogleCloudPlatform/gcs-fuse-csi-driver/issues/355; that nothing is published was never tried",
    is_confirmed=False,
)
REFUSED_BY_MOUNT = Row(
    "refused-by-mount",
    "hard links, exchanges, renames into or out of the mount, and of a directory in which a file is being written, are done as a local"
    " file system does them",
    "gcsfuse refuses them, so that the job would have gone another way",
    is_confirmed=False,
)
WHOLE_OBJECTS = Row(
    "whole-objects",
    "an object is there as a whole once its upload is complete, and not before",
    "https://cloud.google.com/storage/docs/consistency",
    is_confirmed=True,
)
REWRITTEN_AS_A_WHOLE = Row(
    "rewritten-as-a-whole",
    "a file that is changed in place, appended to, or written out of order is uploaded again as a whole when it is closed",
    "no call changes an object, nor a part of an upload; how the job's library does it was not looked at",
    is_confirmed=False,
)
NO_DIRECTORIES = Row(
    "no-directories",
    "there are no directories: one without objects is not there",
    "https://cloud.google.com/storage/docs/folder-types",
    is_confirmed=True,
)
COPY_THEN_DELETE = Row(
    "copy-then-delete",
    "the job renames by copying and then deleting, object by object in the order of a listing",
    "no call renames several objects; how the job's library does it was not looked at",
    is_confirmed=False,
)
