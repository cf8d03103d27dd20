import { shellQuote } from '@sandwire/shell-quote'

/** A mount in the sandbox's mount namespace; unmounted with it. */
export type Mount =
  | { readonly kind: 'bind'; readonly from: string; readonly to: string }
  /** A disk image. Its reserved blocks are for sandboxd, so that it can write when the user has filled the disk. */
  | { readonly kind: 'image'; readonly from: string; readonly to: string; readonly daemonId: number }
  | { readonly kind: 'terminals'; readonly to: string; readonly max: number }
  /** A read-only union of folders, the first on top. At least two; paths may be relative to the working directory. */
  | { readonly kind: 'overlay'; readonly layers: readonly string[]; readonly to: string }
  /** A tmpfs that every user can write to. Its root belongs to `owner`, or to the user who mounts it. */
  | {
      readonly kind: 'memory'
      readonly bytes: number
      readonly inodes: number
      readonly owner: number | undefined
      readonly to: string
    }
  /** Device nodes of the sandbox's own, and what the folder `links` has. */
  | { readonly kind: 'devices'; readonly links: string; readonly to: string }

/** Devices that every sandbox has. */
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty']
/** Size and inodes of the file system with the device nodes. */
const DEVICES_LIMIT = 'size=64k,nr_inodes=64'

/** Quotes a field of fstab(5). */
function field(text: string): string {
  return text.replaceAll(
    /[\s\\#]/g,
    (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )
}

/** Quotes a path in an option of overlayfs, where commas and colons separate. */
function layer(folder: string): string {
  return folder.replaceAll(/[\\:,]/g, (character) => `\\${character}`)
}

function row(mount: Mount): readonly [source: string, target: string, type: string, options: string] {
  switch (mount.kind) {
    case 'bind':
      return [mount.from, mount.to, 'none', 'bind']
    case 'image':
      // `discard` makes freed blocks sparse again.
      return [mount.from, mount.to, 'ext4', `loop,discard,nosuid,nodev,noatime,resuid=${mount.daemonId}`]
    case 'terminals':
      return ['devpts', mount.to, 'devpts', `newinstance,ptmxmode=0666,mode=620,max=${mount.max}`]
    case 'overlay':
      return ['overlay', mount.to, 'overlay', `ro,nosuid,nodev,lowerdir=${mount.layers.map(layer).join(':')}`]
    case 'memory': {
      const owner = mount.owner === undefined ? '' : `,uid=${mount.owner},gid=${mount.owner}`
      const limits = `size=${mount.bytes},nr_inodes=${mount.inodes}`
      return ['tmpfs', mount.to, 'tmpfs', `nosuid,nodev,mode=1777,${limits}${owner}`]
    }
    case 'devices':
      return ['tmpfs', mount.to, 'tmpfs', `nosuid,noexec,mode=755,${DEVICES_LIMIT}`]
  }
}

/** The mounts in the format of fstab(5): one `mount` process for all of them. */
export function formatMountTable(mounts: readonly Mount[]): string {
  return mounts.map((mount) => `${row(mount).map(field).join(' ')} 0 0\n`).join('')
}

/** Images of earlier versions have no folder for sandboxd. */
function ensureState(folder: string, daemonId: number): string[] {
  const state = shellQuote(folder)
  return [`mkdir -p ${state}`, `chown ${daemonId}:${daemonId} ${state}`, `chmod 711 ${state}`]
}

/** Shell commands that complete the mounts. */
export function completeMounts(mounts: readonly Mount[]): string[] {
  return mounts.flatMap((mount) => {
    switch (mount.kind) {
      case 'image':
        // The user may have changed their modes. Their parent belongs to root, so they are no symbolic links.
        return [
          `chmod 755 ${shellQuote(`${mount.to}/workspace`)} ${shellQuote(`${mount.to}/home`)}`,
          ...ensureState(`${mount.to}/state`, mount.daemonId),
        ]
      case 'devices': {
        // Copies are other inodes than the machine's, so that they show no use by others.
        const nodes = DEVICES.map((name) => `/dev/${name}`).join(' ')
        const to = shellQuote(mount.to)
        const bind = `: > ${to}/$name; mount --bind /dev/$name ${to}/$name`
        return [
          `cp -a ${shellQuote(`${mount.links}/.`)} ${to}`,
          // Where root may not create device nodes, they are the machine's.
          `cp -a ${nodes} ${to} 2>/dev/null || for name in ${DEVICES.join(' ')}; do ${bind}; done`,
          `mount -o remount,bind,ro ${shellQuote(mount.to)}`,
        ]
      }
      case 'bind':
      case 'terminals':
      case 'overlay':
      case 'memory':
        return []
    }
  })
}
