# vjp_cases.py - The derivatives that are checked by numbers
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The cases of all families: `cases()` of each vjp_cases_*.py beside this file.
from op_helpers import family_modules

CASES = [case for module in family_modules("vjp_cases") for case in module.cases()]
