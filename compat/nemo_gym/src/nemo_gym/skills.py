"""Skill folders, and where an agent finds them."""

from rollbook import (
    SkillsRef as SkillsRef,
    load_skills as load_skills,
    stage_skills as stage_skills,
)
