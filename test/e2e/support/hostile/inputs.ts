/** Percent-encoded paths that traverse out of the workspace, or look like it. */
export const QUERY_PATHS: readonly string[] = [
  '../outside/secret',
  '..%2foutside%2fsecret',
  '%2e%2e/outside/secret',
  '%252e%252e/outside/secret',
  '..%252foutside/secret',
  '..%c0%afoutside/secret',
  '..%00/outside/secret',
  '..;/outside/secret',
  '....//outside/secret',
  'a/./../../outside/secret',
  'nothing/../../outside/secret',
  '../workspace-evil/secret',
  '%5c..%5coutside',
  'file:///etc/passwd',
  '/etc/passwd',
  '//etc/passwd',
  '%00',
  '..',
  '',
  `${'a/'.repeat(2048)}`,
  'x'.repeat(256),
  '%ED%A0%80',
  '%zz',
  // Names with terminal escape sequences and bidirectional controls.
  '%1B%5D0%3Bx%07',
  'a%E2%80%AEb%0A%1B%5B2J',
]

/** The same paths as JSON strings. */
export const JSON_PATHS: readonly string[] = [
  '../outside/secret',
  'a/./../../outside/secret',
  'nothing/../../outside/secret',
  '../workspace-evil/secret',
  '/etc/passwd',
  '..',
  '',
  'nul\0/../../outside/secret',
  'a/'.repeat(2048),
  'x'.repeat(256),
  '\ud800',
  '\u001b]0;x\u0007',
  'a\u202eb\n\u001b[2J',
]

/**
 * Arguments that git or ripgrep would take for an option, a range, a pattern or another file. A program that one of them starts
 * creates the file `mark`.
 */
export function hostileArguments(mark: string): readonly string[] {
  return [
    `--upload-pack=touch ${mark}`,
    `--output=${mark}`,
    `-O touch ${mark}`,
    `--open-files-in-pager=touch ${mark}`,
    `ext::sh -c touch% ${mark}`,
    `ssh://-oProxyCommand=touch ${mark}/x`,
    `--config=core.sshCommand=touch ${mark}`,
    '-c',
    '--exec-path=.',
    '-h',
    '@{-1}',
    'HEAD:../../outside/secret',
    ':(attr)',
    ':/',
    `$(touch ${mark})`,
    `--pre=${mark}.sh`,
    '-f../outside/secret',
    `--hostname-bin=${mark}.sh`,
    '--search-zip',
    '-uuu',
    '(a+)+$',
    '\x1B[2J',
    'a‮b',
  ]
}
