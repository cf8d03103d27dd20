import { printable, type TerminalState } from '@sandwire/react'
import { sharingTexts } from '../texts/sharing.ts'

/** Participant in a session, as a terminal shows them. */
export interface Participant {
  readonly id: string
  readonly name: string
  readonly initials: string
  readonly isSelf: boolean
  /** The same person in another window, as far as names tell; those of guests are anybody's. */
  readonly isOwn: boolean
  readonly drives: boolean
  readonly isConnected: boolean
  readonly role: 'driver' | 'collaborator' | 'viewer'
}

/** What control puts behind the names of guests, which they choose themselves. */
const GUEST_MARK = '(guest)'

const characters = new Intl.Segmenter('en')

function firstCharacters(word: string, count: number): string {
  return Array.from(characters.segment(word), ({ segment }) => segment)
    .slice(0, count)
    .join('')
}

function initialsOf(name: string): string {
  // A word in brackets, such as what control says of guests, is no part of a name.
  const words = name.split(/\s+/).filter((word) => /^[^\p{P}]/u.test(word))
  const [first = name, last] = [words[0], words.length > 1 ? words.at(-1) : undefined]
  const letters =
    last === undefined ? firstCharacters(first, 2) : firstCharacters(first, 1) + firstCharacters(last, 1)
  return letters.toUpperCase()
}

/** Who is in a session: this person first, then those who drive, type and watch. */
export function participantsOf({
  presence,
  attachment,
}: Pick<TerminalState, 'presence' | 'attachment'>): readonly Participant[] {
  const order = ['driver', 'collaborator', 'viewer']
  const attachments = presence?.attachments ?? []
  const own = attachments.find(({ id }) => id === attachment)?.name ?? ''
  const isAccount = own !== '' && !own.endsWith(GUEST_MARK)
  return attachments
    .map(({ id, name, role, connected }) => {
      const shown = printable(name) === '' ? sharingTexts.unknownUser : printable(name)
      const isSelf = id === attachment
      return {
        id,
        role,
        name: shown,
        initials: isSelf ? sharingTexts.you : initialsOf(shown),
        isSelf,
        isOwn: isAccount && !isSelf && name === own,
        drives: id === presence?.driver,
        isConnected: connected,
      }
    })
    .toSorted((left, right) =>
      left.isSelf === right.isSelf
        ? order.indexOf(left.role) - order.indexOf(right.role)
        : Number(right.isSelf) - Number(left.isSelf),
    )
}

/** Somebody's name, with what they are to this person. */
export function participantName({ name, isSelf, isOwn }: Participant): string {
  return isSelf ? sharingTexts.self(name) : isOwn ? sharingTexts.ownWindow(name) : name
}

/** What somebody does in a session, in a word or two. */
export function participantActivity({ drives, role, isConnected }: Participant): string {
  const what = drives
    ? sharingTexts.hasControl
    : role === 'viewer'
      ? sharingTexts.viewOnly
      : sharingTexts.canType
  return isConnected ? what : sharingTexts.disconnected(what)
}

/** What this person can do about who drives. */
type ControlAction = 'ask' | 'take' | undefined

/** Whoever may drive can take over from nobody, and ask somebody; who already drives needs neither. */
export function controlActionOf({
  role,
  authority,
  presence,
}: Pick<TerminalState, 'role' | 'authority' | 'presence'>): ControlAction {
  if (authority !== 'driver' || role === 'driver' || role === undefined) return undefined
  const driver = presence?.attachments.find(({ id }) => id === presence.driver)
  return driver?.connected === true ? 'ask' : 'take'
}

/**
 * Whether somebody can be let drive. Nobody is told who may, but whoever types may, and whoever did or drove in this session still
 * may when they watch; a person's own window always may.
 */
export function canReceiveControl(
  { id, isSelf, isOwn, isConnected, role }: Participant,
  seen: ReadonlySet<string>,
): boolean {
  return !isSelf && isConnected && (isOwn || role !== 'viewer' || seen.has(id))
}

/** Why somebody is not offered to drive, to who drives. */
export function findControlProblem({ isSelf, isConnected }: Participant): string {
  if (isSelf) return ''
  return isConnected ? sharingTexts.viewersCannot : sharingTexts.disconnectedCannot
}

/** Who drives, and who would like to. */
export function controlText({
  role,
  driver,
  asker,
  isAsked,
  isFree,
}: {
  readonly role: TerminalState['role']
  readonly driver: Participant | undefined
  /** Who asked this person to hand over. */
  readonly asker: Participant | undefined
  /** This person asked the driver. */
  readonly isAsked: boolean
  /** This person has only to type to drive. */
  readonly isFree: boolean
}): string {
  if (role === 'driver')
    return asker === undefined ? sharingTexts.youHaveControl : sharingTexts.requestedBy(nameInSentence(asker))
  if (driver === undefined) return isFree ? sharingTexts.typeToTakeControl : sharingTexts.nobodyHasControl
  if (isAsked) return sharingTexts.waitingFor(nameInSentence(driver))
  return driver.isOwn ? sharingTexts.controlInOtherWindow : sharingTexts.hasControlOf(driver.name)
}

/** What somebody is called in a sentence. */
export function nameInSentence({ name, isOwn }: Participant): string {
  return isOwn ? sharingTexts.yourOtherWindow : name
}
