"""Fits and predictions on a Dask cluster: workers add up their own partitions of the rows.

Only a sample of the rows, on which hyper-parameters are tuned, is sent to the client; after that,
sums are. Needs the extra ``dask``.
"""

try:
    import dask.dataframe as _dask  # noqa: F401
    import distributed as _distributed  # noqa: F401
except ModuleNotFoundError as error:
    missing = (error.name or "dask").partition(".")[0]
    raise ModuleNotFoundError(
        f'polyfid.distributed needs {missing}; install it with: pip install "polyfid[dask]"',
        name=missing,
    ) from None

from polyfid.distributed.cluster import fit
from polyfid.distributed.partitions import predict, predict_proba

__all__ = ["fit", "predict", "predict_proba"]
