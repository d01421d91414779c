// Who is chatting.

/** The backend calls everybody "You" of whom nobody has told it a name. */
export function isNamed(name) {
    return name !== "" && name !== "You";
}
