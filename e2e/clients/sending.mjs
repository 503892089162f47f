// sending returns a fetch that replaces the body of every POST, if one is given. It shows what a client does with the
// answer to a body that the client itself would never send.
export const sending = (body) => (to, init) => fetch(to, body && init?.method === 'POST' ? { ...init, body } : init);
