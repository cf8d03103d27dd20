import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { findMirror } from '../fresh/debian.ts'
import { run } from './engine.ts'

const NAME = 'sandwire-debian:bookworm'
const PACKAGES = 'ca-certificates,git,openssh-client,procps,tmux'

/** Builds a Debian base image with the sandbox's tools from packages and imports it into the engine, once. */
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
