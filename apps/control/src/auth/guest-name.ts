/** What a guest is called who gives no name. */
export const NAMELESS_GUEST = 'guest'
const MARK = ' (guest)'
/** Of what a guest chooses, so that it can be shown with the mark wherever names are. */
export const MAX_GUEST_NAME_CHARS = 64 - MARK.length

/** The name of a guest as anybody sees it. Guests choose theirs, and none may look like somebody whom others know. */
export function guestName(chosen: string): string {
  if (chosen === NAMELESS_GUEST || chosen.endsWith(MARK)) return chosen
  // Whole characters only.
  let name = chosen.slice(0, MAX_GUEST_NAME_CHARS)
  if (!name.isWellFormed()) name = name.slice(0, -1)
  return name + MARK
}

/** How the names of guests' sign-ins begin. */
export const GUEST_LOGIN = 'guest-'

/** Whether a sign-in is a guest's, who is here for what was shared with them and nothing else. */
export function isGuestLogin(login: string | undefined): boolean {
  return login?.startsWith(GUEST_LOGIN) === true
}
