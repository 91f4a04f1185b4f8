"""The cost of the full flow against the size of the vocabulary: M = 1,000,000 beside M = 1,000, both ours."""

from benchmarks import Row, paired_seconds
from dynamics import SequenceClasses, gradient_flow


def run() -> list[Row]:
    large, small = (SequenceClasses.single_common_token(10, size) for size in (1_000_000, 1_000))

    def flow(classes):
        # A fixed number of steps at any M: rates and times are in the units that the flow scales with.
        return gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=700.0, rtol=1e-8)

    # Another M is another problem, so the results differ; what agrees is the conserved sum of every row of Y.
    residue = float(abs(flow(large).row_sums()["y"]).max())
    ours, peer = paired_seconds(lambda: flow(large), lambda: flow(small), runs=7)
    return [
        Row(
            "full flow, K = 10, M = 1,000,000",
            ours,
            "ours at M = 1,000",
            peer,
            residue,
            1e-12,
            result="row sums of Y, from 0",
        )
    ]
