"""Which tests prove how each row of docs/failures.md is told, as far as no fault of faults.py does.

`RENDERED`: a refusal (exit 2), a warning, or files in which the row can't happen. `CHECKED`: told by facts that are not
of the checks' own kind. `NOT_TOLD`: rows for which docs/failures.md says check, and facts do not tell; with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

REFUSALS, DOUBTS = "tests/plan/test_refusals.py", "tests/plan/test_doubts.py"
CACHE, SNAPSHOT = "tests/checks/test_cache.py", "tests/remote/programs/test_verify_cache.py"
DISAPPOINTS = f"{DOUBTS}::test_what_is_known_to_disappoint_warns_by_its_row"
NO_VARIABLE_LEFT = "tests/render/test_golden.py::test_compose_has_no_variable_left_to_fill_in"
ASKED_FOR = "tests/render/test_compose.py::test_what_a_family_asks_for_is_rendered"
RULED_OUT = "tests/checks/test_rows.py"

RENDERED: Mapping[str, tuple[str, ...]] = {
    "F03": (f"{REFUSALS}::test_an_image_of_the_other_family",),
    "F04": ("tests/render/test_serve.py::test_an_image_of_another_family_is_named_and_not_started",),
    "F05": (f"{REFUSALS}::test_a_switch_of_the_other_family", DISAPPOINTS),
    "F06": (f"{REFUSALS}::test_a_value_that_the_family_cannot_run_with",),
    "F09": ("tests/plan/test_resolve.py::test_an_image_with_a_digest_is_a_tag_and_what_it_has_to_be",),
    "F11": (DISAPPOINTS,),
    "F12": ("tests/plan/test_argv.py::test_vllms_parser_takes_every_profile_on_every_rank",),
    "F13": (f"{REFUSALS}::test_a_flag_that_the_family_cannot_take",),
    "F14": (f"{REFUSALS}::test_a_flag_that_the_family_cannot_take",),
    "F24": ("tests/inventory/test_load.py::test_a_mistake_names_file_line_and_key",),
    "F35": ("tests/capacity/test_doubts.py::*",),
    "F41": ("tests/inventory/test_load.py::test_both_local_is_refused",),
    "F50": (ASKED_FOR,),
    "F53": ("tests/plan/test_launch.py::test_the_worker_is_at_the_rendezvous_before_the_head_starts",),
    "F58": (f"{RULED_OUT}::test_both_ranks_are_given_one_master",),
    "F61": (f"{DOUBTS}::test_link_local_addresses_and_dockers_restarts_warn",),
    "F63": (f"{RULED_OUT}::test_a_stop_is_never_waited_for_in_minutes",),
    "F67": (
        NO_VARIABLE_LEFT,
        "tests/remote/programs/test_run.py::test_nothing_of_the_environment_chooses_another_engine",
    ),
    "F68": ("tests/test_settings.py::test_a_byte_order_mark_and_windows_line_ends_change_nothing",),
    "F69": ("tests/render/test_env.py::test_any_value_comes_back_from_compose_as_it_was",),
    "F70": (NO_VARIABLE_LEFT,),
    "F71": ("tests/render/test_compose.py::test_no_missing_source_is_made_a_folder",),
    "F72": ("tests/remote/programs/test_receive.py::test_data_that_ends_early_leaves_nothing",),
    "F73": ("tests/render/test_env.py::test_only_its_owner_reads_it",),
    "F74": (f"{REFUSALS}::test_a_variable_that_has_no_place_in_a_profile",),
    "F75": (
        f"{DOUBTS}::test_a_published_profile_warns_of_the_open_api_alone",
        f"{DOUBTS}::test_beyond_loopback_the_routes_that_need_no_key_are_named",
    ),
    "F76": (f"{REFUSALS}::test_a_variable_that_has_no_place_in_a_profile",),
    "F77": (f"{REFUSALS}::test_an_empty_variable",),
    "F78": (f"{REFUSALS}::test_an_empty_variable",),
    "F79": ("tests/plan/test_environment.py::test_ranks_differ_in_nothing_else_and_no_value_is_empty",),
    "F81": (f"{RULED_OUT}::test_the_api_listens_where_clients_are",),
    "F83": (f"{REFUSALS}::test_a_flag_that_is_there_already",),
    "F89": (DISAPPOINTS,),
    "F92": ("tests/capacity/test_budget.py::*",),
    "F93": (DISAPPOINTS,),
    "F95": ("tests/render/test_serve.py::test_a_0731_checkpoint_on_anemll_gets_every_step",),
    "F98": (DISAPPOINTS,),
    "F99": (f"{REFUSALS}::test_more_verify_rows_than_the_family_survives",),
    "F100": (f"{REFUSALS}::test_more_verify_rows_than_the_family_survives",),
    "F101": (DISAPPOINTS,),
    "F102": (f"{REFUSALS}::test_fewer_draft_tokens_than_the_model_drafts_at_once",),
    "F103": (f"{REFUSALS}::test_a_value_that_the_family_cannot_run_with",),
    "F110": ("tests/render/test_serve.py::test_a_0731_checkpoint_on_anemll_gets_every_step",),
    "F118": (f"{RULED_OUT}::test_compiled_kernels_outlive_their_container",),
    "F121": (f"{RULED_OUT}::test_compiled_kernels_outlive_their_container",),
    "F122": (ASKED_FOR,),
    "F125": ("tests/strict/test_check.py::test_a_wrong_value_names_the_accepted_form",),
    "F126": (f"{RULED_OUT}::test_a_length_beyond_the_config_is_allowed_where_it_is_asked_for",),
}

CHECKED: Mapping[str, tuple[str, ...]] = {
    "F16": (f"{SNAPSHOT}::test_a_missing_shard_is_partial_and_named", "tests/flow/test_gate.py::*"),
    "F17": (f"{CACHE}::test_a_pinned_revision_that_one_node_lacks_names_what_it_has",),
    "F18": (f"{CACHE}::test_without_a_revision_both_refs_have_to_mean_the_same",),
    "F19": (f"{CACHE}::test_what_looks_wrong_warns_and_stops_nothing",),
    "F20": (f"{CACHE}::test_complete_and_different_is_nodes_differ",),
    "F21": (f"{SNAPSHOT}::test_a_shard_that_is_not_as_long_as_its_header_says",),
    "F22": (f"{SNAPSHOT}::test_links_that_leave_the_mount_work_on_the_node_and_not_in_the_container",),
    "F23": (f"{CACHE}::*",),
    "F25": (f"{CACHE}::test_a_pinned_revision_that_one_node_lacks_names_what_it_has",),
    "F27": (f"{CACHE}::test_a_pinned_revision_that_one_node_lacks_names_what_it_has",),
    "F28": (f"{SNAPSHOT}::test_a_hub_that_is_a_link_elsewhere_has_to_be_named_in_the_inventory",),
    "F60": ("tests/flow/test_up.py::test_a_broken_pair_of_the_same_release_is_restarted_without_a_question",),
    "F80": ("tests/flow/test_up.py::test_a_second_up_asks_the_api_and_changes_nothing",),
    "F85": ("tests/remote/programs/test_probe.py::test_only_whole_releases_are_told",),
    "F87": (
        "tests/remote/test_ssh.py::*",
        "tests/bed/test_doctor.py::test_a_node_that_can_not_be_reached_leaves_the_other_checked",
    ),
}
BY: Mapping[str, str] = {
    **dict.fromkeys(("F16", "F17", "F18", "F19", "F20", "F21", "F22", "F25", "F27", "F28"), "verify-cache, cache"),
    "F23": "cache-encoder",
    "F60": "up",
    "F80": "up",
    "F85": "up",
    "F87": "ssh-login",
}

NOT_TOLD: Mapping[str, str] = {
    "F26": "dspark downloads nothing while a pair starts; `verify-cache` names the limits in what it tells to type",
    "F40": "no sidecar is offered",
    "F84": "there is no such switch: what is skipped is said with `--skip`, and recorded",
    "F97": "that patch is not carried; see docs/preparation.md",
    "F116": "that setting belongs to a patch that is not carried",
}
# By what docs/failures.md says of a row.
UNTOLD_BY: Mapping[frozenset[str], str] = {
    frozenset({"log"}): "a line of a rank's log tells it: `up` while it waits, `explain` for any log",
    frozenset({"state"}): "containers or the API tell it while they run: `up`, `status`",
    frozenset({"log", "state"}): "a rank's log, its container or the API tell it: `up`, `status`, `explain`",
    frozenset({"—"}): "nothing that dspark looks at shows it",
}
