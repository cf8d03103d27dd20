import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { run } from './engine.ts'

const NAME = 'sandwire-debian:bookworm'
const PACKAGES = 'ca-certificates,git,openssh-client,procps,tmux'

/** The mirror that this machine's apt uses. */
function findMirror(): string {
  const policy = run('Find the mirror of apt', ['apt-cache', 'policy', 'base-files'])
  const mirror = /\d+ (https?:\/\/\S+) /.exec(policy)?.[1]
  if (mirror === undefined) throw new Error('Cannot find the mirror of apt: run apt-get update')
  return mirror
}

/** Makes a Debian with the tools of a sandbox out of packages alone, and hands it to the engine; made once. */
export function importDebian(engine: string): string {
  if (Bun.spawnSync([engine, 'image', 'inspect', NAME]).success) return NAME
  if (Bun.which('debootstrap') === null)
    throw new Error('Cannot make a base: debootstrap is not installed (apt-get install debootstrap)')
  const folder = mkdtempSync(path.join(tmpdir(), 'sandwire-debian-'))
  try {
    const tree = path.join(folder, 'root')
    const options = ['--variant=minbase', `--include=${PACKAGES}`]
    run('Make a Debian with debootstrap', ['debootstrap', ...options, 'bookworm', tree, findMirror()])
    const archive = path.join(folder, 'root.tar')
    run('Pack it', ['tar', '-C', tree, '-cf', archive, '.'])
    run('Import it', [engine, 'import', archive, NAME])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return NAME
}
