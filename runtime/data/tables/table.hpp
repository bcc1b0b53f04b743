#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/progress.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/tables/csv.hpp"
#include "fields/cells.hpp"

namespace gpunn::data {

// A CSV file whose rows have as many fields as its first line, which may name them.
class Table : public fields::CellTable {
 public:
  // Throws Error if the file has no line, fewer than two columns, or numbers instead of names.
  Table(const std::filesystem::path& file, bool header, Delimiter delimiter);

  const std::filesystem::path& file() const override { return file_; }
  const std::vector<std::string>& columns() const override { return columns_; }
  std::string column(std::size_t index) const override;
  // The number of a column, given its name or number. `key` is its key in the experiment: "data.label_column".
  std::size_t find(const std::string& wanted, const char* key) const;

  bool next(std::vector<std::string>& fields);  // false at the end
  int64_t line() const override { return reader_.line(); }
  bool at_first_row() const { return rows_ == 1; }
  [[noreturn]] void fail(const std::string& what) const override { reader_.fail(what); }
  [[noreturn]] void refuse(const std::string& field, std::size_t column, const std::string& expected,
                           const std::string& advice) const override;

 private:
  std::string delimiter_word() const;

  std::filesystem::path file_;
  bool header_;
  Delimiter delimiter_;
  CsvReader reader_;
  std::vector<std::string> first_;  // the row in hand where it has no names
  std::vector<std::string> columns_;
  int64_t rows_ = 0;
  LongWork work_;
};

// Throws Error if the columns of the test and training tables differ.
void require_same_columns(const std::filesystem::path& test, const std::vector<std::string>& of_test,
                          const std::filesystem::path& train, const std::vector<std::string>& of_train);

}  // namespace gpunn::data
