// Catch2 as a function, for programs with a main of their own.
#pragma once

int run_tests(int argc, char** argv);
