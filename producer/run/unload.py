"""Run an unload: plan, create the job, follow it, publish the manifest."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from producer.options.reads import UnloadOptions
from producer.outputs.stdout_spool import spool_folder
from producer.plan.plan import Plan
from producer.plan.unload import plan_unload, transforms_of_unload
from producer.request.one_file import OneFile
from producer.request.output import STDOUT, check_empty
from producer.request.unload import unload_request
from producer.run.job import plan_and_run, plan_slots
from producer.services.start import Services
from ringhaul.cluster.view import ClusterView


def run_unload(options: UnloadOptions, services: Services) -> int:
    """Run `ringhaul unload` with the services that were started for it; the exit code."""
    loaded = services.loaded
    to_stdout = options.output == STDOUT
    with ExitStack() as stack:
        request = unload_request(options, loaded, services.job_id)
        functions = transforms_of_unload(options, loaded.settings)
        output = request.output
        if to_stdout and not options.dry_run:
            stack.enter_context(spool_folder(Path(output.url)))
        elif not to_stdout and not options.adopted and not _is_named(request.file):
            check_empty(output.url)
        slots = plan_slots(loaded, own_workers=to_stdout)

        def plan(cluster: ClusterView) -> Plan:
            return plan_unload(
                options, request, functions, cluster, loaded.settings, services.job_id, slots
            )

        return plan_and_run(options, services, plan, output="" if to_stdout else output.url)


def _is_named(file: OneFile | None) -> bool:
    """Return whether the user names one file, so that others in its folder do not matter."""
    return file is not None and bool(file.name)
