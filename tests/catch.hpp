// Catch2 version 2 (Debian 12) or 3 (Ubuntu 24.04) under one name.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using Catch::Approx;
namespace catch_compat {
inline auto Contains(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
}  // namespace catch_compat
#else
#include <catch2/catch.hpp>
using Approx = Catch::Detail::Approx;
namespace catch_compat {
inline auto Contains(const std::string& text) { return Catch::Matchers::Contains(text); }
}  // namespace catch_compat
#endif

using catch_compat::Contains;
