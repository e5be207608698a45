"""What a cluster of a project cannot be made to do, refused when a scenario is bound to it, with the reason."""

from collections.abc import Sequence

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError
from harness.scenario import Fault
from harness.scenario.cluster_faults import BreakNode, ForgetImage, RestartComponent, RevokeCapacity
from harness.targets.gcp.place import Place
from harness.targets.gcp.refusals import check_credentials
from harness.targets.kubernetes.api import Object
from harness.targets.kubernetes.manifest_files import queues_document, queues_of, read_job

API_SERVER = "Google runs the control plane of the cluster: nobody else can kill its API server"
OPERATOR = "Kueue and KubeRay are shared by all who use the cluster, and a run restarts nobody else's controller"
IMAGE = "it would have to delete the image from the disks of nodes, to which nobody has access"
KUBELET = 'nobody has access to the kubelet of a node; a machine that is reset, how = "power-off", takes it away with everything else'
NETWORK = "a rule that cuts off one node would have to be made in the project's network, which is not the run's; try how = \"power-off\""
REVOCATION = "DWS reclaims capacity when the run time that it was granted for is over, and takes no request to do so before"


def fault_problem(fault: Fault) -> str:
    """Why a fault cannot be caused; empty when it can."""
    match fault:
        case RestartComponent(component="api-server"):
            return API_SERVER
        case RestartComponent():
            return OPERATOR
        case ForgetImage():
            return IMAGE
        case BreakNode(how="kubelet"):
            return KUBELET
        case BreakNode(how="partition"):
            return NETWORK
        case RevokeCapacity():
            return REVOCATION
        case _:
            return ""


def check_launch(launch: Launch, place: Place) -> None:
    """See that a cluster of a project would take a launch; no service is asked.

    Raises:
        InvalidDocumentError: Naming the field that it would not.
    """
    if launch.armed:
        moments = ", ".join(launch.armed)
        problem = f"is held at {moments}, and nothing in the pods of a project's cluster can hold it there"
        _refuse(
            launch, "injections", problem, "let faults act after seconds, or on what the log of a workload says that speaks no protocol"
        )
    check_credentials(launch)
    if not image_of(launch, place):
        _refuse(launch, "image", "is named nowhere", "name one in the workload, in [gcp] image, or in the manifest")
    cluster = launch.cluster
    if cluster.submits == "ray-job" and not cluster.manifest:
        problem = "a RayJob is made for the workload, sized for the local cluster"
        _refuse(launch, "cluster.submits", problem, "write the RayJob as it is deployed, and name its file in cluster.manifest")
    if cluster.queues:
        _check_queues(launch)


def image_of(launch: Launch, place: Place) -> str:
    """What pods are made of where nothing else is said; empty: nobody says."""
    if launch.image or place.image or not launch.cluster.manifest:
        return launch.image or place.image
    return next(filter(None, map(_first_image, read_job(launch.root / launch.cluster.manifest))), "")


def local_queues(launch: Launch) -> list[Object]:
    """The LocalQueues of a run: what lies in its namespace. What is behind them is the cluster's own, and adopted."""
    return [one for one in queues_of(launch) if one["kind"] == "LocalQueue"]


def _check_queues(launch: Launch) -> None:
    foreign = sorted({str(one["kind"]) for one in queues_of(launch) if one["kind"] != "LocalQueue"})
    if foreign:
        problem = (
            f"{queues_document(launch)} brings {', '.join(foreign)}: what belongs to a whole cluster is adopted on a project, not made"
        )
        _refuse(launch, "cluster.queues", problem, "write LocalQueues alone into it, which name a ClusterQueue that is there")


def _first_image(thing: Object) -> str:
    """Of the first pod template that a job has."""
    spec = thing.get("spec") or {}
    cluster = spec.get("rayClusterSpec") or {}
    templates: Sequence[Object] = [
        spec.get("template") or {},
        (cluster.get("headGroupSpec") or {}).get("template") or {},
    ]
    containers = [one for template in templates for one in (template.get("spec") or {}).get("containers") or []]
    return next((str(one["image"]) for one in containers if one.get("image")), "")


def _refuse(launch: Launch, field: str, problem: str, advice: str) -> None:
    raise InvalidDocumentError(document=launch.job, field=field, problem=problem, advice=advice)
