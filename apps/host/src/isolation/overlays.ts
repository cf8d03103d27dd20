import { mkdirSync } from 'node:fs'
import { createMountPrefix } from './launch-script.ts'
import { SYSTEM_ENV } from './system-tools.ts'

/** A union of the system's programs and the current folder, mounted where nothing else sees it. */
const TRIAL = 'mount -t overlay -o ro,lowerdir=/usr:. overlay /usr && exec /usr/bin/true'

/** True when this user can mount overlays of `/usr` and of a folder. Checked by mounting one. */
export async function canMountOverlays(isRoot: boolean, folder: string): Promise<boolean> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const child = Bun.spawn([...createMountPrefix(isRoot), 'sh', '-c', TRIAL], {
    cwd: folder,
    env: SYSTEM_ENV,
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  return (await child.exited) === 0
}
