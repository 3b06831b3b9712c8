"""The API conforms to its OpenAPI description for generated requests."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode, checks

from .conftest import listening, put

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


@pytest.mark.long
@pytest.mark.parametrize("n_examples", [5, pytest.param(30, marks=pytest.mark.slow)])
def test_the_api_conforms_to_its_openapi_description(make_desk, examples, classify, n_examples):
    desk = make_desk(upload_bytes=1 << 20)
    with listening(desk) as address:
        with httpx.Client(base_url=address, timeout=60) as client:
            for path in sorted(examples.glob("r*.npz")):
                put(client, path)
            classify(desk)
            description = client.get("/api/openapi.json").json()
        description["paths"].pop("/api/events")  # it never ends
        operations = [found.ok() for found in schemathesis.openapi.from_dict(description).get_all_operations()]
        assert len(operations) >= 15
        for operation in operations:
            conforms(operation, GenerationMode.POSITIVE, address, n_examples)
            if any(operation.iter_parameters()) or operation.body:  # without any, there is nothing to get wrong
                conforms(operation, GenerationMode.NEGATIVE, address, n_examples)


def conforms(operation, mode, address, n_examples):
    @settings(
        max_examples=n_examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case):
        case.call_and_validate(base_url=address, checks=CHECKS)

    check()
