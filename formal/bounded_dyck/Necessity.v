(** Theorem 1: what a layer that is right at every length cannot do without. *)

Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Require Import List Arith.
From Formal.common Require Import Sums.
From Formal.bounded_dyck Require Import Pairs Words.
Import ListNotations.
Open Scope R_scope.

(** A layer with O outputs, right at every length: after every prefix that asks, its outputs are those of the query and
    the last unmatched type, and types differ in them. Each closing query (j, d) has a continuous head of its own, since
    the link of (6) hands a head the query's embedding. *)
Definition right (k D W O : nat) (V : state -> nat -> R) (Z : state -> state -> R) (head : nat -> nat -> nat -> (nat -> R) -> R)
    (target : nat -> nat -> nat -> nat -> R) : Prop :=
  (forall j d o, (j < k)%nat -> (1 <= d < D)%nat -> (o < O)%nat -> continuous_head W (head j d o)) /\
  (forall j d t w, (j < k)%nat -> (t < k)%nat -> (1 <= d < D)%nat -> asks k D j d t w -> forall o, (o < O)%nat ->
    head j d o (LN W (before_LN V Z (At (Close j) d) w)) = target j d t o) /\
  (forall j d t t', (t < k)%nat -> (t' < k)%nat -> t <> t' -> exists o, (o < O)%nat /\ target j d t o <> target j d t' o).

(** The types of (16) of which the last is t. *)
Lemma types k d t : (2 <= k)%nat -> (t < k)%nat -> Forall (fun s => (s < k)%nat) (repeat 0%nat d ++ [t]).
Proof.
  intros Pk Lt. apply Forall_app. split; [|now constructor]. apply Forall_forall. intros s Hs.
  apply repeat_spec in Hs. lia.
Qed.

(** @statement Bounded Dyck: Theorem 1, necessity
    @clause a pair adds nothing (14)
    @kind clause
    @hypotheses k >= 2 types, D levels, values of any width, any logits; at each closing query a head with any number of
      outputs, each continuous in the features; after every prefix that ends in a closed bracket of depth d from 1 to D - 1, of any
      length, the outputs are the target of its last bracket and its last unmatched type, and targets of two types differ
    @formula u(q, open(i, l)) + u(q, close(i, l - 1)) = 0 for every type i, every level l from 1 to D and every such query q
    @note A query's head is what follows LN at that query: the link of (6), which adds the query's embedding to what
      attention gathers, is a part of it. Features are LN of the sum of (13), which softmax attention gives by equation13.
      Values stand behind LN's projection. That two prefixes exist whose last unmatched types differ is a part of the theorem. *)
Theorem necessity_of_silence :
  forall k D W O V Z head target, (2 <= k)%nat -> right k D W O V Z head target ->
  forall i l j d e, (i < k)%nat -> (1 <= l <= D)%nat -> (j < k)%nat -> (1 <= d < D)%nat -> (e < W)%nat ->
  let q := At (Close j) d in
  u V Z q (At (Open i) l) e + u V Z q (At (Close i) (pred l)) e = 0.
Proof.
  intros k D W O V Z head target Pk [Cont [Right Differ]] i l j d e Li Ll Lj Ld Le q.
  destruct (Differ j d 0%nat 1%nat ltac:(lia) ltac:(lia) ltac:(lia)) as [o [Lo Do]].
  set (add := fun b s => u V Z q s b). set (w := fun t => repeat 0%nat (d - 1) ++ [t]).
  set (x := fun t b => u V Z q Start b + (gather (add b) 0 (prefix16 (w t) j)
    + Sum (between d l) (fun m => Words.pair (add b) 0 (d + 2 + m)))).
  assert (Lw : forall t, length (w t) = d) by (intro t; unfold w; rewrite app_length, repeat_length; simpl; lia).
  assert (Out : forall t, (t < k)%nat -> forall n,
    head j d o (LN W (fun b => x t b + INR n * Words.pair (add b) i l)) = target j d t o).
  { intros t Lt n. rewrite <- (Right j d t (lengthened (w t) j n i l) Lj Lt Ld); [|
      |exact Lo].
    - f_equal. f_equal. apply FunctionalExtensionality.functional_extensionality. intro b.
      unfold before_LN. fold q. change (fun s => u V Z q s b) with (add b).
      rewrite lengthened_gather, Lw by lia. unfold x. ring.
    - replace d with (S (length (repeat 0%nat (d - 1)))) at 1 by (rewrite repeat_length; lia).
      apply lengthened_asks; try assumption; [now apply types|rewrite repeat_length; lia]. }
  exact (head_hides W (head j d o) (x 0%nat) (x 1%nat) (fun b => Words.pair (add b) i l) _ _ (Cont j d o Lj Ld Lo) Do
    (Out 0%nat ltac:(lia)) (Out 1%nat ltac:(lia)) e Le).
Qed.

(** From (14) at two queries, for one pair whose open bracket has a value that is not zero. *)
Lemma logits_from_silence W (V : state -> nat -> R) Z (o c q q' : state) :
  (exists e, (e < W)%nat /\ V o e <> 0) ->
  (forall e, (e < W)%nat -> u V Z q o e + u V Z q c e = 0) ->
  (forall e, (e < W)%nat -> u V Z q' o e + u V Z q' c e = 0) -> Z q o - Z q c = Z q' o - Z q' c.
Proof.
  intros [e [Le Ne]] H H'. pose proof (H e Le) as A. pose proof (H' e Le) as B. unfold u in A, B.
  assert (E : forall p, exp (Z p o) = exp (Z p o - Z p c) * exp (Z p c)).
  { intro p. rewrite <- exp_plus. f_equal. ring. }
  rewrite E in A, B. pose proof (exp_pos (Z q c)). pose proof (exp_pos (Z q' c)).
  assert (A1 : V o e * exp (Z q o - Z q c) = - V c e) by (apply (Rmult_eq_reg_r (exp (Z q c))); lra).
  assert (B1 : V o e * exp (Z q' o - Z q' c) = - V c e) by (apply (Rmult_eq_reg_r (exp (Z q' c))); lra).
  apply exp_inv. apply (Rmult_eq_reg_l (V o e)); [lra|exact Ne].
Qed.

(** @statement Bounded Dyck: Theorem 1, necessity
    @clause logits of a pair (11)
    @kind clause
    @hypotheses as for (14), in the theorem necessity_of_silence; no state of a bracket has the value zero
    @formula Z(q, open(i, l)) - Z(q, close(i, l - 1)) is the same at all closing queries q of depth 1 to D - 1, for every
      type i and every level l from 1 to D *)
Theorem balance_is_necessary :
  forall k D W O V Z head target, (2 <= k)%nat -> right k D W O V Z head target ->
  (forall b d, exists e, (e < W)%nat /\ V (At b d) e <> 0) ->
  forall i l j d j' d', (i < k)%nat -> (1 <= l <= D)%nat -> (j < k)%nat -> (1 <= d < D)%nat ->
  (j' < k)%nat -> (1 <= d' < D)%nat ->
  Z (At (Close j) d) (At (Open i) l) - Z (At (Close j) d) (At (Close i) (pred l))
  = Z (At (Close j') d') (At (Open i) l) - Z (At (Close j') d') (At (Close i) (pred l)).
Proof.
  intros k D W O V Z head target Pk R Loud i l j d j' d' Li Ll Lj Ld Lj' Ld'.
  apply (logits_from_silence W V); [apply Loud| |]; intros e Le;
    now apply (necessity_of_silence k D W O V Z head target).
Qed.

(** @statement Bounded Dyck: Silent pairs
    @clause (11) for the other pairs only
    @kind clause
    @hypotheses k >= 2 types, D >= 2 levels, values of any width, any logits; at each closing query a head with any
      number of outputs, each continuous in the features; after every prefix that ends in a closed bracket of depth d from 1 to D - 1, of any
      length, the outputs are the target of its last bracket and its last unmatched type, and targets of two types differ
    @formula for each pair: either both its values are zero, or neither is, and then Z(q, open) - Z(q, close) is the same
      at all closing queries of depth 1 to D - 1
    @note That such a layer has (14) is necessity_of_silence, at Theorem 1. *)
Theorem loud_pairs_are_balanced :
  forall k D W O V Z head target, (2 <= k)%nat -> (2 <= D)%nat -> right k D W O V Z head target ->
  forall i l, (i < k)%nat -> (1 <= l <= D)%nat ->
  let o := At (Open i) l in let c := At (Close i) (pred l) in
  (forall e, (e < W)%nat -> V o e = 0 /\ V c e = 0) \/
  (exists e, (e < W)%nat /\ V o e <> 0) /\ (exists e, (e < W)%nat /\ V c e <> 0) /\
  forall j d j' d', (j < k)%nat -> (1 <= d < D)%nat -> (j' < k)%nat -> (1 <= d' < D)%nat ->
  Z (At (Close j) d) o - Z (At (Close j) d) c = Z (At (Close j') d') o - Z (At (Close j') d') c.
Proof.
  intros k D W O V Z head target Pk PD R i l Li Ll o c.
  pose proof (necessity_of_silence k D W O V Z head target Pk R i l) as S. cbv zeta in S. fold o c in S.
  assert (Both : forall e, (e < W)%nat -> (V o e = 0 <-> V c e = 0)).
  { intros e Le. pose proof (S 0%nat 1%nat e Li Ll ltac:(lia) ltac:(lia) Le) as E. unfold u in E.
    pose proof (exp_pos (Z (At (Close 0) 1) o)). pose proof (exp_pos (Z (At (Close 0) 1) c)).
    split; intro H1; rewrite H1 in E.
    - apply (Rmult_eq_reg_r (exp (Z (At (Close 0) 1) c))); lra.
    - apply (Rmult_eq_reg_r (exp (Z (At (Close 0) 1) o))); lra. }
  destruct (differ (V o) (fun _ => 0) W) as [[e [Le Ne]]|Zero]; [right|left].
  - split; [now exists e|]. split; [exists e; split; [exact Le|]; intro C; apply Ne; now apply Both|].
    intros j d j' d' Lj Ld Lj' Ld'. apply (logits_from_silence W V); [now exists e| |]; intros e' Le'; now apply S.
  - intros e Le. split; [now apply Zero|]. apply Both; [exact Le|now apply Zero].
Qed.
