import { ApiError } from '../api/request.ts'
import type { NoFile } from './file-state.ts'

/** What the server says of a place where there is no file. */
const CODES: Readonly<Record<string, NoFile>> = {
  file_not_found: 'gone',
  // The folder that it was in.
  not_a_folder: 'gone',
  is_a_folder: 'folder',
  special_file: 'special',
}

/** What there is in the place of a file that could not be read or written; undefined when that was not the reason. */
export function noFileOf(caught: unknown): NoFile | undefined {
  return caught instanceof ApiError ? CODES[caught.code] : undefined
}
