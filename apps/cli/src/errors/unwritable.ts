import { AdvisedError } from './advised-error.ts'

/** Something takes no more bytes, for this errno. */
export class Unwritable extends AdvisedError {
  constructor(where: string, errno: string) {
    super('file_refused', `Cannot write to ${where}: ${errno}`, 'check where the output goes')
  }
}
