// A worker that computes the note hash of the notes of a preview: of a long chart this takes a second.

import { hashCanonicalNotes } from "../../../clients/npm/src/note_hash.js";
import { canonicalNotes } from "./preview_notes.js";

onmessage = ({ data }) => postMessage(hashCanonicalNotes(data.keys, canonicalNotes(data)));
