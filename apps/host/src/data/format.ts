import { SandwireError } from '@sandwire/protocol'
import type { DataFolder } from './data-folder.ts'
import { readPrivateFile, writePrivateFile } from './private-file.ts'

/** Rises with what an older Sandwire would misread or lose; what it can leave alone does not raise it. */
const DATA_FORMAT = 1

/** Marks the folder with the format of what is in it. Throws where a newer Sandwire has been: it may have kept what this one would spoil. */
export function claimFormat(
  { root, format }: Pick<DataFolder, 'root' | 'format'>,
  known = DATA_FORMAT,
): void {
  const text = readPrivateFile(format)?.trim()
  if (text === String(known)) return
  // None, or cut short by a full disk: from before there was one.
  const found = text === undefined || text === '' ? 0 : Number(text)
  if (!(found <= known))
    throw new SandwireError(
      'bad_request',
      `Cannot use the data folder "${root}": its format "${text}" is not known to this Sandwire, which knows ${known}\nhint: use the newer version that has used it, or choose another folder with --data`,
    )
  writePrivateFile(format, `${known}\n`)
}
