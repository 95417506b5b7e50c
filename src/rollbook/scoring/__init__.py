"""Outcomes and rows → numbers: means and their errors, pass@k, aggregate metrics, coverage in words.

Rules:
* Everything here is pure and plain Python: values in, values out.
* No number depends on the order in which its rows or records came.
"""
