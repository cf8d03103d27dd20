import { printable, type TerminalState } from '@sandwire/react'
import { sharingTexts } from '../texts/sharing.ts'

/** An attachment of a session, for display. */
export interface Participant {
  readonly id: string
  readonly name: string
  readonly initials: string
  readonly isSelf: boolean
  /** Another window of the same user, judging by the name; guests choose theirs, so they never match. */
  readonly isOwn: boolean
  /** Redeemed a share link without an account, and chose the name. */
  readonly isGuest: boolean
  /** A coding agent. */
  readonly isAgent: boolean
  readonly hasControl: boolean
  readonly isConnected: boolean
  readonly role: 'driver' | 'collaborator' | 'viewer'
}

/** Control adds this to the names of guests. One who gave no name is called just `guest`. */
const GUEST_NAME = /^(?:(.*) \(guest\)|guest)$/su

/** A name, and whether control marked it as that of a guest. */
export function parseName(marked: string): { readonly name: string; readonly isGuest: boolean } {
  const guest = GUEST_NAME.exec(marked)
  return guest === null ? { name: marked, isGuest: false } : { name: guest[1] ?? '', isGuest: true }
}

/** A holder's or participant's name with the mark first, where a long name cannot push it out of sight. */
export function markedName({
  name,
  isGuest,
  isAgent = false,
}: Pick<Participant, 'name' | 'isGuest'> & Partial<Pick<Participant, 'isAgent'>>): string {
  if (isAgent) return sharingTexts.agent(name)
  return isGuest ? sharingTexts.guest(name) : name
}

const characters = new Intl.Segmenter('en')

function firstCharacters(namePart: string, count: number): string {
  return Array.from(characters.segment(namePart), ({ segment }) => segment)
    .slice(0, count)
    .join('')
}

function initialsOf(name: string): string {
  // Words in brackets, such as the guest suffix, are not part of the name.
  const nameParts = name.split(/\s+/).filter((namePart) => /^[^\p{P}]/u.test(namePart))
  const [first = name, last] = [nameParts[0], nameParts.length > 1 ? nameParts.at(-1) : undefined]
  const letters =
    last === undefined ? firstCharacters(first, 2) : firstCharacters(first, 1) + firstCharacters(last, 1)
  return letters.toUpperCase()
}

/** The participants of a session: the user first, then by role. */
export function participantsOf({
  presence,
  attachment,
}: Pick<TerminalState, 'presence' | 'attachment'>): readonly Participant[] {
  const order = ['driver', 'collaborator', 'viewer']
  const attachments = presence?.attachments ?? []
  const own = attachments.find(({ id }) => id === attachment)?.name ?? ''
  const isAccount = own !== '' && !parseName(own).isGuest
  return attachments
    .map(({ id, name, role, connected, agent: isAgent = false }) => {
      const { name: printed, isGuest } = isAgent
        ? { name: printable(name), isGuest: false }
        : parseName(printable(name))
      const shown = printed === '' && !isGuest ? sharingTexts.unknownUser : printed
      const isSelf = id === attachment
      return {
        id,
        role,
        name: shown,
        initials: isSelf ? sharingTexts.you : initialsOf(shown === '' ? sharingTexts.guest('') : shown),
        isSelf,
        isOwn: isAccount && !isSelf && !isAgent && name === own,
        isGuest,
        isAgent,
        hasControl: id === presence?.driver,
        isConnected: connected,
      }
    })
    .toSorted((left, right) =>
      left.isSelf === right.isSelf
        ? order.indexOf(left.role) - order.indexOf(right.role)
        : Number(right.isSelf) - Number(left.isSelf),
    )
}

/** The participant's name, marked when it is the user. */
export function participantName(participant: Participant): string {
  const { isSelf, isOwn } = participant
  const name = markedName(participant)
  return isSelf ? sharingTexts.self(name) : isOwn ? sharingTexts.ownWindow(name) : name
}

/** What the participant can do. */
export function participantActivity({ hasControl, role, isConnected }: Participant): string {
  const what = hasControl
    ? sharingTexts.hasControl
    : role === 'viewer'
      ? sharingTexts.viewOnly
      : sharingTexts.canType
  return isConnected ? what : sharingTexts.disconnected(what)
}

/** What the user can do about control. */
type ControlAction = 'ask' | 'take' | undefined

/** An attachment that may drive can take free control and request it from another; the driver needs neither. */
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
 * True when control can be given to a participant. The server does not report who may drive, but collaborators may,
 * and so may viewers who had another role before; the user's own window and agents always may.
 */
export function canReceiveControl(
  { id, isSelf, isOwn, isAgent, isConnected, role }: Participant,
  typists: ReadonlySet<string>,
): boolean {
  return !isSelf && isConnected && (isOwn || isAgent || role !== 'viewer' || typists.has(id))
}

/** Why control cannot be given to a participant. */
export function findControlProblem({ isSelf, isConnected }: Participant): string {
  if (isSelf) return ''
  return isConnected ? sharingTexts.viewersCannot : sharingTexts.disconnectedCannot
}

/**
 * What the user can do about private input. It concerns agents only, and everyone who may type can begin it. Ending it is possible
 * also when no agent is left.
 */
export function privateActionOf({
  role,
  presence,
}: Pick<TerminalState, 'role' | 'presence'>): 'begin' | 'end' | undefined {
  if (role === undefined || role === 'viewer' || presence === undefined) return undefined
  if (presence.private !== null) return 'end'
  return presence.attachments.some(({ agent }) => agent === true) ? 'begin' : undefined
}

/** Who has control, and who requests it. */
export function controlText({
  role,
  driver,
  requester,
  isRequested,
  canTakeByTyping,
}: {
  readonly role: TerminalState['role']
  readonly driver: Participant | undefined
  /** The participant who requested control from the user. */
  readonly requester: Participant | undefined
  /** The user requested control. */
  readonly isRequested: boolean
  /** Typing is enough to take control. */
  readonly canTakeByTyping: boolean
}): string {
  if (role === 'driver')
    return requester === undefined
      ? sharingTexts.youHaveControl
      : sharingTexts.requestedBy(nameInSentence(requester))
  if (driver === undefined)
    return canTakeByTyping ? sharingTexts.typeToTakeControl : sharingTexts.nobodyHasControl
  if (isRequested) return sharingTexts.waitingFor(nameInSentence(driver))
  return driver.isOwn ? sharingTexts.controlInOtherWindow : sharingTexts.hasControlOf(markedName(driver))
}

/** The participant's name within a sentence. */
export function nameInSentence({ name, isOwn, isGuest, isAgent }: Participant): string {
  if (isOwn) return sharingTexts.yourOtherWindow
  if (isAgent) return sharingTexts.agentInSentence(name)
  return isGuest ? sharingTexts.guestInSentence(name) : name
}
