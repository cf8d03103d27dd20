import { SandwireError } from '@sandwire/protocol'

/** The error for a read or write on a descriptor that failed. */
export function systemError(caught: unknown, doing: string): SandwireError {
  if (caught instanceof SandwireError) return caught
  const code = caught instanceof Error && 'code' in caught ? String(caught.code) : ''
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new SandwireError('disk_full', `${doing}: no space is left`, { cause: caught })
  }
  return new SandwireError('internal', `${doing}: the system failed`, { cause: caught })
}
