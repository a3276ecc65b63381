"""Every plot of the report, under one name. A plot takes tables, computes no statistic and returns a figure."""

from __future__ import annotations

from judgelab.report.plots_agreement import (
    agreement_plot,
    category_plot,
    confusion_heatmaps,
    label_frequency_plot,
)
from judgelab.report.plots_bias import battery_plot, choice_plot
from judgelab.report.plots_confidence import risk_coverage_plot
from judgelab.report.plots_length import length_plot, leniency_plot
from judgelab.report.plots_policies import policy_plot
from judgelab.report.plots_position import category_position_plot, first_position_plot, swap_heatmap
from judgelab.report.plots_ranking import rank_plot, rank_set_plot, ratings_scatter, win_heatmap
from judgelab.report.plots_repairs import reliability_plot, repairs_plot
from judgelab.report.plots_scores import reviewer_plot, score_distributions
from judgelab.report.plots_spending import answer_length_plot, consensus_plot, spending_plot
from judgelab.report.style import show, style

__all__ = [
    "agreement_plot",
    "answer_length_plot",
    "battery_plot",
    "category_plot",
    "category_position_plot",
    "choice_plot",
    "confusion_heatmaps",
    "consensus_plot",
    "first_position_plot",
    "label_frequency_plot",
    "length_plot",
    "leniency_plot",
    "policy_plot",
    "rank_plot",
    "rank_set_plot",
    "ratings_scatter",
    "reliability_plot",
    "repairs_plot",
    "reviewer_plot",
    "risk_coverage_plot",
    "score_distributions",
    "show",
    "spending_plot",
    "style",
    "swap_heatmap",
    "win_heatmap",
]
