"""What the engine says is stored in English and read in the reader's language."""

import pytest
from django.utils import translation

from apps.provisioning.reasons import in_words


@pytest.mark.parametrize(
    ("stored", "korean"),
    [
        ("site does not answer", "사이트가 응답하지 않음"),
        ("deploy:3", "운영 체제 설치: 3번째 시도"),
        ("node_fault: clean failed: no reason given", "노드 이상: 초기화 실패: 사유 없음"),
        (
            "prove_ready: not what was bought: GPU count: wanted 8, got 7; boot disk: wanted /, "
            "got none",
            "준비 확인: 주문과 다름: GPU 수: 8 필요, 7 확인; 부팅 디스크: / 필요, 없음 확인",
        ),
        # what an outside system or a person said stays as it is
        ("transient: HTTP 503: no reason at all", "일시적 오류: HTTP 503: no reason at all"),
        ("fan 3 stands still", "fan 3 stands still"),
        ("", ""),
    ],
)
def test_a_reason_is_read_in_korean(stored, korean):
    with translation.override("ko"):
        assert in_words(stored) == korean


def test_in_english_only_the_names_of_steps_become_words():
    assert in_words("deploy:3") == "Install the operating system: try 3"
    assert in_words("no capacity: none free") == "no capacity: none free"
