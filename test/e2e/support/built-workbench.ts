import { resolve } from 'node:path'
import { prepareWorkbench } from '../../../apps/host/src/control/workbench-files.ts'

const ROOT = resolve(import.meta.dir, '../../..')

/** Folder with the built workbench, as the host would serve it. */
export function buildWorkbench(): Promise<string> {
  return prepareWorkbench(ROOT, resolve(ROOT, '.cache'))
}
