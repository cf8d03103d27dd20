/** Files of `/etc` that a sandbox has of its own, by name. `name` is the host name inside. */
export function createEtcFiles(name: string): Readonly<Record<string, string>> {
  return {
    passwd: [
      'root:x:0:0:sandboxd:/:/usr/sbin/nologin',
      'user:x:1000:1000:user:/home/user:/bin/bash',
      'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
      '',
    ].join('\n'),
    group: 'root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n',
    hosts: `127.0.0.1 localhost ${name}\n::1 localhost\n`,
    hostname: `${name}\n`,
    'nsswitch.conf':
      'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n',
    'host.conf': 'multi on\n',
    // No name server is reachable; names are resolved by the egress proxy, where there is one.
    'resolv.conf': '',
    shells: '/bin/sh\n/bin/bash\n',
    profile: PROFILE,
    'bash.bashrc': BASHRC,
  }
}

/** Read by login shells. */
const PROFILE = `PATH="$HOME/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
export PATH
if [ -n "$BASH_VERSION" ] && [ -f /etc/bash.bashrc ]; then . /etc/bash.bashrc; fi
`

/** Read by interactive bash. With each prompt it says its folder (OSC 7), so that paths which programs print can be followed. */
const BASHRC = `case $- in *i*) ;; *) return ;; esac
shopt -s checkwinsize
PS1='\\u@\\h:\\w\\$ '
__tell_folder() {
  local folder=\${PWD//%/%25}
  printf '\\033]7;file://%s%s\\033\\\\' "$HOSTNAME" "\${folder//[[:cntrl:]]/}"
}
PROMPT_COMMAND=__tell_folder
`

/** Links of `/etc`, by name. */
export const ETC_LINKS: Readonly<Record<string, string>> = {
  mtab: '/proc/mounts',
  'os-release': '/usr/lib/os-release',
}

/**
 * What programs of a usual system look for in `/etc` and cannot do without: taken from this machine, read-only,
 * where it exists. Nothing here says who uses the machine or how it is reached.
 */
export const ETC_FROM_HOST: readonly { readonly name: string; readonly kind: 'file' | 'folder' }[] = [
  { name: 'alternatives', kind: 'folder' },
  { name: 'ld.so.cache', kind: 'file' },
  { name: 'ld.so.conf', kind: 'file' },
  { name: 'ld.so.conf.d', kind: 'folder' },
  { name: 'localtime', kind: 'file' },
  { name: 'mime.types', kind: 'file' },
  { name: 'protocols', kind: 'file' },
  { name: 'services', kind: 'file' },
  { name: 'ssl/certs', kind: 'folder' },
  { name: 'ssl/openssl.cnf', kind: 'file' },
  { name: 'terminfo', kind: 'folder' },
  { name: 'vim', kind: 'folder' },
]
