#pragma once

#include <string>

#include "report/contents.hpp"

// The sections of a report, each as HTML; empty if there is nothing to show.
namespace gpunn::reports {

std::string headline(const Contents& contents);
std::string curves(const Contents& contents);
std::string class_section(const ClassEvalReport& report);
std::string confusion_section(const ClassEvalReport& report);
std::string mistakes_section(const Contents& contents);
std::string output_section(const ClassEvalReport& report);     // of data without classes, as the next two
std::string scatter_section(const ClassEvalReport& report);    // of numbers
std::string crops_section(const ClassEvalReport& report);      // of images
std::string detection_section(const ClassEvalReport& report);  // of boxes
std::string worst_pictures_section(const ClassEvalReport& report);
std::string worst_rows_section(const Contents& contents);
std::string filters_section(const Contents& contents);

// Numbers for people.
std::string percent(double share);       // "98.61 %", "-" for NaN
std::string decimal(double value);       // "0.0271", likewise
std::string figure(const Score& score);  // either of these
std::string count(int64_t value);        // "60 000", with thin spaces that do not break
std::string image(const chart::Raster& raster, const std::string& alternative);
std::string numbered_name(int64_t number, const std::string& name);  // "3 cat", or "3" if that is the name

}  // namespace gpunn::reports
