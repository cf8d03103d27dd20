import { isatty } from 'node:tty'

type Environment = Readonly<Record<string, string | undefined>>

/** The program that opens a page in the browser of whoever sits here; undefined where nobody can be expected to. */
export function pageOpener(env: Environment, platform: string): string | undefined {
  const isRemote = (env['SSH_CONNECTION'] ?? env['SSH_TTY'] ?? '') !== ''
  if (platform === 'darwin') return isRemote ? undefined : 'open'
  const hasDisplay = (env['WAYLAND_DISPLAY'] ?? '') !== '' || (env['DISPLAY'] ?? '') !== ''
  return platform === 'linux' && hasDisplay ? 'xdg-open' : undefined
}

/** Opens a page, if stdout is a terminal in a graphical session. Nothing depends on it: the address is shown anyway. */
export function openPage(url: string, env: Environment): void {
  const opener = isatty(1) ? pageOpener(env, process.platform) : undefined
  if (opener === undefined) return
  try {
    Bun.spawn([opener, url], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }).unref()
  } catch {
    // No such program here.
  }
}
