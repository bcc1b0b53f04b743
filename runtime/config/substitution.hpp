#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace gpunn::config {

// Puts a model's parameters into a scalar: "$width" or "${width}" becomes its value, and where nothing but a sum or
// product of whole numbers remains ("$width*2", "($a+$b)/2") it is worked out. Throws Error saying what is wrong; a
// division has to come out even.
std::string substitute(std::string_view text, const std::map<std::string, std::string>& parameters);
// Adds the names of the parameters that a text mentions.
void collect_parameters(std::string_view text, std::set<std::string>& names);

}  // namespace gpunn::config
