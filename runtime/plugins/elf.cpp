#include "plugins/elf.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <system_error>

#include <elf.h>

namespace gpunn::plugins {

namespace {

constexpr unsigned char kHostData = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

// The machine of the running program, from its own file.
uint16_t host_machine() {
  static const uint16_t machine = [] {
    std::ifstream program("/proc/self/exe", std::ios::binary);
    Elf64_Ehdr header{};
    program.read(reinterpret_cast<char*>(&header), sizeof(header));
    return program ? header.e_machine : Elf64_Half{EM_NONE};
  }();
  return machine;
}

std::string truncated(const std::string& where) { return "truncated: " + where + "; copy or build it again"; }

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv64";
    case EM_PPC64:
      return "ppc64";
    case EM_S390:
      return "s390x";
    default:
      return "ELF machine " + std::to_string(machine);
  }
}

}  // namespace

std::string why_not_loadable(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return error ? error.message() : "not a regular file";
  const uint64_t size = std::filesystem::file_size(file, error);
  std::ifstream stream(file, std::ios::binary);
  if (error || !stream) return "the file can't be read";

  Elf64_Ehdr header{};
  stream.read(reinterpret_cast<char*>(&header), sizeof(header));
  const auto read = static_cast<std::size_t>(stream.gcount());
  if (read < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "not an ELF shared object: the file does not begin with the ELF mark";
  }
  if (read < sizeof(header)) return "not an ELF shared object: the file ends within its header";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kHostData) {
    return "built for another machine: not 64-bit, or of the other byte order";
  }
  if (host_machine() != EM_NONE && header.e_machine != host_machine()) {
    return "built for another machine: it is of " + machine_name(header.e_machine) + ", this program of " +
           machine_name(host_machine()) + "; build it for " + machine_name(host_machine());
  }
  if (header.e_type != ET_DYN) return "not a shared object: ELF type " + std::to_string(header.e_type);
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return "not an ELF shared object: nonsense in its header";

  stream.clear();
  stream.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    stream.read(reinterpret_cast<char*>(&segment), sizeof(segment));
    if (!stream) return truncated("the file ends within its program headers");
    if (segment.p_type == PT_LOAD && (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)) {
      return truncated("a segment ends at byte " + std::to_string(segment.p_offset + segment.p_filesz) +
                       ", the file at " + std::to_string(size));
    }
  }
  // The table of sections is a library's end. Nothing there is loaded, but a file without it was cut short.
  const uint64_t sections = uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff != 0 && (header.e_shoff > size || sections > size - header.e_shoff)) {
    return truncated("its sections end at byte " + std::to_string(header.e_shoff + sections) + ", the file at " +
                     std::to_string(size));
  }
  return "";
}

}  // namespace gpunn::plugins
