import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { showPath } from '../beneath/show-path.ts'

/** A path as details name it, printable. */
export function shown(path: string): string {
  return showPath(path).slice(1, -1)
}

/** Says refusals in the contract's words; those without are said in ours. */
export async function inWords<T>(
  path: string,
  words: Partial<Record<ErrorCode, string>>,
  action: () => Promise<T>,
): Promise<T> {
  try {
    return await action()
  } catch (caught) {
    const error = SandwireError.from(caught)
    const all: Partial<Record<ErrorCode, string>> = {
      path_refused: `Path traversal detected: ${shown(path)}`,
      ...words,
    }
    throw new SandwireError(error.code, all[error.code] ?? error.message, { cause: error })
  }
}
