# What Debian asks of the files before they are packed: texts compressed, none twice. cpack runs it once all components
# are laid down, each in a folder of CPACK_TEMPORARY_DIRECTORY.
file(GLOB_RECURSE texts ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*.1 ${CPACK_TEMPORARY_DIRECTORY}/*/changelog.Debian)
file(GLOB news ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/gpunn/CHANGELOG.md)
foreach(file ${news})
  get_filename_component(folder ${file} DIRECTORY)
  file(RENAME ${file} ${folder}/changelog)
  list(APPEND texts ${folder}/changelog)
  file(REMOVE ${folder}/LICENSE) # it is in `copyright`
endforeach()
execute_process(COMMAND gzip -9n ${texts} COMMAND_ERROR_IS_FATAL ANY)
