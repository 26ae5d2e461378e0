"""Fits and predictions on a Dask cluster: workers add up their own partitions of the rows.

Of the rows only the sample that hyper-parameters are tuned on comes to the client; from then on
sums do. Needs the extra ``dask``.
"""

from polyfid.distributed.fitting import fit
from polyfid.distributed.predicting import predict, predict_proba

__all__ = ["fit", "predict", "predict_proba"]
