import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'

/** Runs a command to its end and returns its output; throws with the end of what it printed when it fails. */
export function run(argv: readonly string[]): string {
  const child = Bun.spawnSync([...argv], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  if (child.success) return child.stdout.toString()
  const output = `${child.stdout.toString()}${child.stderr.toString()}`.trimEnd().split('\n').slice(-15)
  throw new Error(`${argv.join(' ')} exited with ${child.exitCode}\n${output.join('\n')}`)
}

/** The mirror that this machine's apt uses. */
export function findMirror(): string {
  const policy = run(['apt-cache', 'policy', 'base-files'])
  const mirror = /\d+ (https?:\/\/\S+) /.exec(policy)?.[1]
  if (mirror === undefined) throw new Error('Cannot find the mirror of apt: run apt-get update')
  return mirror
}

/** Code name of the release that this machine runs, such as `bookworm`. */
function findSuite(): string {
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1]
  if (suite === undefined) throw new Error('Cannot make a Debian root: /etc/os-release names no release')
  return suite
}

/** Creates a minimal Debian root folder; once per release, cached in `cache`. */
export function ensureDebian(cache: string, say: (line: string) => void): string {
  const suite = findSuite()
  const folder = path.join(cache, `debian-${suite}-${process.arch}`)
  if (existsSync(folder)) return folder
  say(`making a minimal Debian (${suite})`)
  const unfinished = `${folder}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(cache, { recursive: true })
  // Certificates, because apt and npm may be configured to use https.
  const options = ['--variant=minbase', '--include=ca-certificates']
  run(['debootstrap', ...options, suite, unfinished, findMirror()])
  renameSync(unfinished, folder)
  return folder
}
