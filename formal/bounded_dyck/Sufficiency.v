(** Theorem 1: under (11) a layer exists that is exact after every prefix, for every k and D, and how wide its network is. *)

Require Import Reals Lra Lia List Arith.
From Formal.common Require Import Sums.
From Formal.bounded_dyck Require Import Pairs Words.
Import ListNotations.
Open Scope R_scope.

(** Definition 1: the next bracket behind a stack of unmatched types, the last one first, p of the print called q there. *)
Definition opening (D : nat) (p : R) (d : nat) : R := if d =? 0 then 1 else if d =? D then 0 else p.
Definition next (k D : nat) (p : R) (stack : list nat) (o : bracket) : R :=
  match o, stack with
  | Open i, _ => opening D p (length stack) / INR k
  | Close i, [] => 0
  | Close i, j :: _ => if i =? j then 1 - opening D p (length stack) else 0
  end.

(** The query of a prefix: its last state. *)
Definition query (w : list bracket) : state := match rev w with [] => Start | b :: _ => At b (depth 0 w) end.

(** A coordinate for each pair, level by level within a type, and the last one for START: k D + 1 in all. *)
Definition slot (D i l : nat) : nat := (i * D + pred l)%nat.

(** Values under (11), where c is the difference of a pair's logits: V_close = -exp(c) V_open. *)
Definition values (k D : nat) (c : nat -> nat -> R) (s : state) (e : nat) : R :=
  match s with
  | Start => kron e (k * D)
  | At (Open i) l => kron e (slot D i l)
  | At (Close i) d => - exp (c i (S d)) * kron e (slot D i (S d))
  end.

(** The least coordinate of an unmatched bracket behind LN, where logits are from lo to hi. *)
Definition smallest (k D : nat) (lo hi : R) : R := exp (lo - hi) / sqrt (INR (k * D + 1)).

(** The network, layer by layer of its weights. First hidden layer: two units a pair, of which h is the difference. *)
Definition relu (x : R) : R := Rmax 0 x.
Definition h (s : R) (x : R) : R := relu (2 * x / s - 1) - relu (2 * x / s - 2).
Definition unmatched (D : nat) (s : R) (f : nat -> R) (i l : nat) : R := if l <=? D then h s (f (slot D i l)) else 0.

(** Second hidden layer: a unit a pair, and one for the empty stack. *)
Definition top (k D : nat) (s : R) (f : nat -> R) (i l : nat) : R :=
  relu (unmatched D s f i l - Sum k (fun j => unmatched D s f j (S l))).
Definition none (k D : nat) (s : R) (f : nat -> R) : R := relu (1 - Sum k (fun j => unmatched D s f j 1)).

(** The third layer of weights is made of distributions. *)
Definition told (k D : nat) (p : R) (i l : nat) (o : bracket) : R := next k D p (i :: repeat 0%nat (pred l)) o.
Definition head (k D : nat) (p s : R) (f : nat -> R) (o : bracket) : R :=
  Sum k (fun i => Sum D (fun m => top k D s f i (S m) * told k D p i (S m) o)) + none k D s f * next k D p [] o.

(** Behind the link of (6) the query is known: [asked] is one at closed brackets of depth l from 1 to D - 1, and the
    other queries say by themselves what comes next. *)
Definition closing (D : nat) (q : state) : Prop := exists j d, q = At (Close j) d /\ (1 <= d < D)%nat.
Definition asked (D : nat) (q : state) (l : nat) : R :=
  match q with At (Close _) d => if andb (1 <=? d) (d <? D) then kron d l else 0 | _ => 0 end.
Definition alone (k D : nat) (p : R) (q : state) (o : bracket) : R :=
  match q with
  | Start => next k D p [] o
  | At (Open i) d => told k D p i d o
  | At (Close _) d => if andb (1 <=? d) (d <? D) then 0 else next k D p [] o
  end.
Definition linked_head (k D : nat) (p s : R) (q : state) (f : nat -> R) (o : bracket) : R :=
  Sum k (fun i => Sum D (fun m => relu (unmatched D s f i (S m) + asked D q (S m) - 1) * told k D p i (S m) o))
  + alone k D p q o.

(** Stacks *)

Lemma run_split k D s w v s' : run k D s (w ++ v) = Some s' -> exists t, run k D s w = Some t /\ run k D t v = Some s'.
Proof.
  revert s. induction w as [|[i|i] w IH]; intros s H; simpl in *.
  - now exists s.
  - destruct (andb (i <? k) (length s <? D)); [now apply IH|discriminate].
  - destruct s as [|j s]; [discriminate|]. destruct (i =? j); [now apply IH|discriminate].
Qed.

Definition stack_of (k D : nat) (s : list nat) : Prop := Forall (fun i => (i < k)%nat) s /\ (length s <= D)%nat.

Lemma run_stack k D s w s' : stack_of k D s -> run k D s w = Some s' -> stack_of k D s' /\ depth (length s) w = length s'.
Proof.
  revert s. induction w as [|[i|i] w IH]; intros s [F L] H; cbn [run] in H.
  - injection H as <-. split; [now split|reflexivity].
  - destruct (Nat.ltb_spec i k); [|discriminate]. destruct (Nat.ltb_spec (length s) D); [|discriminate].
    apply (IH (i :: s)) in H; [exact H|split; [now constructor|simpl; lia]].
  - destruct s as [|j s]; [discriminate|]. destruct (i =? j); [|discriminate].
    inversion F; subst. apply (IH s) in H; [exact H|split; [assumption|simpl in L; lia]].
Qed.

(** What the unmatched brackets of a stack add. *)
Fixpoint stacked (add : state -> R) (s : list nat) : R :=
  match s with [] => 0 | i :: below => add (At (Open i) (length s)) + stacked add below end.

(** Matched pairs that add nothing leave the stack. *)
Lemma gather_stack k D add s w s' :
  (forall i l, (i < k)%nat -> (1 <= l <= D)%nat -> Words.pair add i l = 0) ->
  stack_of k D s -> run k D s w = Some s' -> stacked add s + gather add (length s) w = stacked add s'.
Proof.
  intro Silent. revert s. induction w as [|[i|i] w IH]; intros s [F L] H; cbn [run] in H.
  - injection H as <-. simpl. ring.
  - destruct (Nat.ltb_spec i k); [|discriminate]. destruct (Nat.ltb_spec (length s) D); [|discriminate].
    rewrite <- (IH (i :: s)); [|split; [now constructor|simpl; lia]|exact H].
    cbn [gather behind stacked length]. ring.
  - destruct s as [|j s]; [discriminate|]. destruct (Nat.eqb_spec i j) as [<-|]; [|discriminate].
    inversion F; subst. simpl in L. rewrite <- (IH s); [|split; [assumption|lia]|exact H].
    pose proof (Silent i (S (length s)) ltac:(assumption) ltac:(lia)) as E. unfold Words.pair in E. simpl pred in E.
    cbn [gather behind stacked length pred]. lra.
Qed.

(** The stack has a bracket of type i at level l. *)
Definition holds (s : list nat) (i l : nat) : bool :=
  andb (andb (1 <=? l) (l <=? length s)) (nth (length s - l) s 0%nat =? i).

Lemma holds_deeper s i l : (length s < l)%nat -> holds s i l = false.
Proof. intro L. unfold holds. replace (l <=? length s) with false by (symmetry; apply Nat.leb_gt; lia). now rewrite Bool.andb_false_r. Qed.

Lemma holds_top t s i : holds (t :: s) i (S (length s)) = (t =? i).
Proof. unfold holds. cbn [length]. rewrite Nat.leb_refl, Nat.sub_diag. reflexivity. Qed.

Lemma holds_below t s i l : (l <= length s)%nat -> holds (t :: s) i l = holds s i l.
Proof.
  intro L. unfold holds. cbn [length]. replace (S (length s) - l)%nat with (S (length s - l)) by lia.
  replace (l <=? S (length s)) with true by (symmetry; apply Nat.leb_le; lia).
  replace (l <=? length s) with true by (symmetry; apply Nat.leb_le; lia). reflexivity.
Qed.

(** Every level of a stack has one type. *)
Lemma one_a_level k D s l : stack_of k D s -> (1 <= l <= length s)%nat ->
  Sum k (fun j => if holds s j l then 1 else 0) = 1.
Proof.
  intros [F _] L. set (t := nth (length s - l) s 0%nat).
  assert (Lt : (t < k)%nat).
  { rewrite Forall_forall in F. apply F. apply nth_In. lia. }
  rewrite (Sum_ext k _ (fun j => kron j t * 1)); [now rewrite Sum_kron|].
  intros j _. unfold holds, kron. fold t.
  replace (1 <=? l) with true by (symmetry; apply Nat.leb_le; lia).
  replace (l <=? length s) with true by (symmetry; apply Nat.leb_le; lia). simpl. rewrite (Nat.eqb_sym t j).
  destruct (j =? t); ring.
Qed.

(** Coordinates *)

Lemma slot_same D i l i' l' : (1 <= l <= D)%nat -> (1 <= l' <= D)%nat ->
  kron (slot D i l) (slot D i' l') = if andb (i =? i') (l =? l') then 1 else 0.
Proof.
  intros L L'. unfold kron, slot.
  destruct (Nat.eqb_spec i i') as [<-|N]; destruct (Nat.eqb_spec l l') as [<-|N']; cbn [andb].
  - now rewrite Nat.eqb_refl.
  - destruct (Nat.eqb_spec (i * D + pred l) (i * D + pred l')); [lia|reflexivity].
  - destruct (Nat.eqb_spec (i * D + pred l) (i' * D + pred l)); [nia|reflexivity].
  - destruct (Nat.eqb_spec (i * D + pred l) (i' * D + pred l')) as [E|]; [|reflexivity]. exfalso.
    destruct (Nat.lt_trichotomy i i') as [A|[A|A]]; [|contradiction|]; nia.
Qed.

Lemma slot_below k D i l : (i < k)%nat -> (1 <= l <= D)%nat -> (slot D i l < k * D)%nat.
Proof. intros A B. unfold slot. nia. Qed.

(** An entry of what is left of the stack. *)
Lemma stacked_slot k D c Z q s i l : stack_of k D s -> (i < k)%nat -> (1 <= l <= D)%nat ->
  stacked (fun t => u (values k D c) Z q t (slot D i l)) s = if holds s i l then exp (Z q (At (Open i) l)) else 0.
Proof.
  intros [F L] Li Ll. induction s as [|t s IH].
  - simpl. now rewrite holds_deeper by (simpl; lia).
  - inversion F; subst. simpl in L. cbn [stacked]. rewrite IH by (assumption || lia).
    unfold u at 1. cbn [values length]. rewrite slot_same by lia.
    destruct (Nat.eq_dec l (S (length s))) as [->|N].
    + rewrite holds_top, (holds_deeper s) by lia. rewrite Nat.eqb_refl, Bool.andb_true_r, (Nat.eqb_sym t i).
      destruct (Nat.eqb_spec i t) as [<-|]; ring.
    + replace (l =? S (length s)) with false by (symmetry; apply Nat.eqb_neq; lia). rewrite Bool.andb_false_r.
      destruct (Nat.le_gt_cases l (length s)).
      * rewrite holds_below by assumption. ring.
      * rewrite !holds_deeper by (simpl; lia). ring.
Qed.

Lemma stacked_start k D c Z q s : stack_of k D s -> stacked (fun t => u (values k D c) Z q t (k * D)%nat) s = 0.
Proof.
  intros [F L]. induction s as [|t s IH]; [reflexivity|]. inversion F; subst. simpl in L. cbn [stacked].
  rewrite IH by (assumption || lia). unfold u. cbn [values length]. rewrite kron_other; [ring|].
  pose proof (slot_below k D t (S (length s)) ltac:(assumption) ltac:(lia)). lia.
Qed.

Definition under_11 (k D : nat) (Z : state -> state -> R) (c : nat -> nat -> R) (q : state) : Prop :=
  forall i l, (i < k)%nat -> (1 <= l <= D)%nat -> Z q (At (Open i) l) - Z q (At (Close i) (pred l)) = c i l.

Lemma silent_pairs k D Z c q e : under_11 k D Z c q ->
  forall i l, (i < k)%nat -> (1 <= l <= D)%nat -> Words.pair (fun s => u (values k D c) Z q s e) i l = 0.
Proof.
  intros B i l Li Ll. unfold Words.pair, u. cbn [values]. replace (S (pred l)) with l by lia.
  replace (Z q (At (Open i) l)) with (c i l + Z q (At (Close i) (pred l))) by (rewrite <- (B i l Li Ll); ring).
  rewrite exp_plus. ring.
Qed.

(** What stands before LN: the stack, and START. *)
Lemma sums k D Z c q w s : under_11 k D Z c q -> run k D [] w = Some s ->
  (forall i l, (i < k)%nat -> (1 <= l <= D)%nat ->
    before_LN (values k D c) Z q w (slot D i l) = if holds s i l then exp (Z q (At (Open i) l)) else 0) /\
  before_LN (values k D c) Z q w (k * D) = exp (Z q Start).
Proof.
  intros B H. assert (E : stack_of k D []) by (split; [constructor|simpl; lia]).
  destruct (run_stack k D [] w s E H) as [St _].
  assert (G : forall e, gather (fun t => u (values k D c) Z q t e) 0 w = stacked (fun t => u (values k D c) Z q t e) s).
  { intro e. pose proof (gather_stack k D _ [] w s (silent_pairs k D Z c q e B) E H) as A. simpl in A. lra. }
  split.
  - intros i l Li Ll. unfold before_LN. rewrite G, (stacked_slot k D c Z q s i l St Li Ll). unfold u. cbn [values].
    rewrite kron_other by (pose proof (slot_below k D i l Li Ll); lia). ring.
  - unfold before_LN. rewrite G, (stacked_start k D c Z q s St). unfold u. cbn [values]. rewrite kron_same. ring.
Qed.

(** Every coordinate is a slot, or START's. *)
Lemma slots k D e : (e < k * D)%nat -> exists i l, (i < k)%nat /\ (1 <= l <= D)%nat /\ e = slot D i l.
Proof.
  intro L. assert (PD : (D <> 0)%nat) by (intro Z; subst; lia).
  exists (e / D)%nat, (S (e mod D)). pose proof (Nat.mod_upper_bound e D PD).
  pose proof (Nat.div_mod e D PD). split; [apply Nat.div_lt_upper_bound; [exact PD|lia]|]. split; [lia|].
  unfold slot. simpl pred. lia.
Qed.

(** Behind LN: zero, or at least the smallest coordinate. *)
Lemma features k D Z c q w s lo hi : under_11 k D Z c q -> (forall t, lo <= Z q t <= hi) -> run k D [] w = Some s ->
  forall i l, (i < k)%nat -> (1 <= l <= D)%nat ->
  let f := LN (k * D + 1) (before_LN (values k D c) Z q w) (slot D i l) in
  if holds s i l then smallest k D lo hi <= f else f = 0.
Proof.
  intros B Bound H i l Li Ll. destruct (sums k D Z c q w s B H) as [A0 A1].
  set (v := before_LN (values k D c) Z q w) in *.
  assert (Small : forall e, (e < k * D + 1)%nat -> 0 <= v e <= exp hi).
  { intros e Le. pose proof (exp_pos hi). destruct (Nat.eq_dec e (k * D)) as [->|N].
    - rewrite A1. pose proof (exp_pos (Z q Start)). destruct (Bound Start) as [_ [U|U]].
      + pose proof (exp_increasing _ _ U). lra.
      + rewrite U. lra.
    - destruct (slots k D e ltac:(lia)) as [i' [l' [Li' [Ll' ->]]]]. rewrite A0 by assumption.
      destruct (holds s i' l'); [|lra]. pose proof (exp_pos (Z q (At (Open i') l'))).
      destruct (Bound (At (Open i') l')) as [_ [U|U]].
      + pose proof (exp_increasing _ _ U). lra.
      + rewrite U. lra. }
  assert (Pv : 0 < norm (k * D + 1) v).
  { apply sqrt_lt_R0. apply (Sum_pos _ _ (k * D)%nat); [intros; apply Rle_0_sqr|lia|].
    rewrite A1. pose proof (exp_pos (Z q Start)). nra. }
  assert (Pn : 0 < INR (k * D + 1)) by (apply lt_0_INR; lia).
  assert (Norm : norm (k * D + 1) v <= sqrt (INR (k * D + 1)) * exp hi).
  { unfold norm. rewrite <- (sqrt_square (exp hi)) by (left; apply exp_pos).
    rewrite <- sqrt_mult by (lra || apply Rle_0_sqr). apply sqrt_le_1_alt.
    unfold dot. rewrite <- (Sum_const (k * D + 1) (exp hi * exp hi)). apply Sum_le. intros e Le.
    destruct (Small e Le). apply Rmult_le_compat; lra. }
  cbv zeta. unfold LN. rewrite A0 by assumption. destruct (holds s i l); [|field; lra].
  unfold smallest. assert (Ps : 0 < sqrt (INR (k * D + 1))) by now apply sqrt_lt_R0.
  replace (exp (lo - hi)) with (exp lo * / exp hi) by (rewrite <- exp_Ropp, <- exp_plus; reflexivity).
  pose proof (exp_pos lo). pose proof (exp_pos hi).
  assert (Low : exp lo <= exp (Z q (At (Open i) l))).
  { destruct (Bound (At (Open i) l)) as [[U|U] _]; [left; now apply exp_increasing|rewrite U; lra]. }
  replace (exp lo * / exp hi / sqrt (INR (k * D + 1))) with (exp lo * / (sqrt (INR (k * D + 1)) * exp hi)) by (field; split; lra).
  unfold Rdiv. apply Rmult_le_compat; [lra| |exact Low|].
  - left. apply Rinv_0_lt_compat. nra.
  - apply Rinv_le_contravar; assumption.
Qed.

Lemma h_at s x : 0 < s -> (x = 0 -> h s x = 0) /\ (s <= x -> h s x = 1) /\ h s x <= 1.
Proof.
  intro P. unfold h, relu.
  assert (E : forall y, Rmax 0 (y - 1) - Rmax 0 (y - 2) <= 1)
    by (intro y; unfold Rmax; destruct (Rle_dec 0 (y - 1)), (Rle_dec 0 (y - 2)); lra).
  split; [|split; [|apply E]].
  - intros ->. replace (2 * 0 / s) with 0 by (field; lra). rewrite !Rmax_left by lra. ring.
  - intro L. assert (2 <= 2 * x / s).
    { apply (Rmult_le_reg_r s); [exact P|]. replace (2 * x / s * s) with (2 * x) by (field; lra). lra. }
    rewrite !Rmax_right by lra. ring.
Qed.

Lemma smallest_pos k D lo hi : 0 < smallest k D lo hi.
Proof.
  apply Rmult_lt_0_compat; [apply exp_pos|]. apply Rinv_0_lt_compat, sqrt_lt_R0, lt_0_INR. lia.
Qed.

(** The first hidden layer reads the stack in zeros and ones. *)
Lemma read k D Z c q w s lo hi : under_11 k D Z c q -> (forall t, lo <= Z q t <= hi) -> run k D [] w = Some s ->
  forall i l, (i < k)%nat -> (1 <= l)%nat ->
  unmatched D (smallest k D lo hi) (LN (k * D + 1) (before_LN (values k D c) Z q w)) i l = if holds s i l then 1 else 0.
Proof.
  intros B Bound H i l Li Ll. unfold unmatched. destruct (Nat.leb_spec l D) as [A|A].
  - pose proof (features k D Z c q w s lo hi B Bound H i l Li (conj Ll A)) as F. cbv zeta in F.
    destruct (h_at (smallest k D lo hi) (LN (k * D + 1) (before_LN (values k D c) Z q w) (slot D i l)) (smallest_pos k D lo hi))
      as [H0 [H1 _]].
    destruct (holds s i l); [now apply H1|now apply H0].
  - assert (E : stack_of k D []) by (split; [constructor|simpl; lia]).
    destruct (run_stack k D [] w s E H) as [[_ L] _]. now rewrite holds_deeper by lia.
Qed.

(** What comes next depends on the stack's last type and its size. *)
Lemma next_told k D p t s o : next k D p (t :: s) o = told k D p t (S (length s)) o.
Proof. unfold told, next. cbn [length pred]. rewrite repeat_length. reflexivity. Qed.

(** A sum of which one term is left. *)
Lemma one_term k D (x : nat -> nat -> R) i m : (i < k)%nat -> (m < D)%nat ->
  (forall i' m', (i' < k)%nat -> (m' < D)%nat -> i' <> i \/ m' <> m -> x i' m' = 0) ->
  Sum k (fun i' => Sum D (fun m' => x i' m')) = x i m.
Proof.
  intros Li Lm Z. rewrite (Sum_ext k _ (fun i' => kron i' i * x i m)); [now rewrite (Sum_kron k i (fun _ => x i m))|].
  intros i' Li'. destruct (Nat.eq_dec i' i) as [->|N].
  - rewrite kron_same, Rmult_1_l. rewrite (Sum_ext D _ (fun m' => kron m' m * x i m)); [now rewrite (Sum_kron D m (fun _ => x i m))|].
    intros m' Lm'. destruct (Nat.eq_dec m' m) as [->|N]; [rewrite kron_same; ring|].
    rewrite kron_other by exact N. rewrite Z by (auto || lia). ring.
  - rewrite kron_other, Rmult_0_l by exact N. apply Sum_zero. intros m' Lm'. apply Z; auto.
Qed.

(** @statement Bounded Dyck: Theorem 1, sufficiency
    @clause exact without the link
    @kind clause
    @hypotheses any number k of types and D of levels, any probability p of an open bracket; logits with (11) at the
      query q, and bounds lo and hi of q's logits; values of width k D + 1: V_open(i, l) is a basis vector, V_close(i, l - 1) is
      -exp(c_il) V_open(i, l) with c_il the difference of (11), and START has a vector of its own
    @formula after every prefix w of bounded Dyck, of any length, the network's output at LN of the sum is the
      distribution of the next bracket (Definition 1)
    @note The network has 2 k D and k D + 1 hidden units: two units a pair, then one a pair and one for the empty stack, and
      no biases besides -1, -2 and 1. The hypothesis names the query, which need not be the prefix's own: without a link
      the network does not see it. *)
Theorem balance_suffices :
  forall k D p Z c q lo hi w s o, under_11 k D Z c q -> (forall t, lo <= Z q t <= hi) -> run k D [] w = Some s ->
  head k D p (smallest k D lo hi) (LN (k * D + 1) (before_LN (values k D c) Z q w)) o = next k D p s o.
Proof.
  intros k D p Z c q lo hi w s o B Bound H.
  assert (E : stack_of k D []) by (split; [constructor|simpl; lia]).
  destruct (run_stack k D [] w s E H) as [St _].
  pose proof (read k D Z c q w s lo hi B Bound H) as Read.
  set (f := LN (k * D + 1) (before_LN (values k D c) Z q w)) in *. set (small := smallest k D lo hi) in *.
  assert (Level : forall l, (1 <= l)%nat ->
    Sum k (fun j => unmatched D small f j l) = if l <=? length s then 1 else 0).
  { intros l Ll. rewrite (Sum_ext k _ (fun j => if holds s j l then 1 else 0)) by (intros; now apply Read).
    destruct (Nat.leb_spec l (length s)); [now apply (one_a_level k D)|].
    apply Sum_zero. intros. now rewrite holds_deeper. }
  unfold head, none. rewrite Level by lia. destruct s as [|t s].
  - cbn [length Nat.leb]. rewrite Sum_zero.
    + unfold relu. rewrite Rmax_right by lra. ring.
    + intros i Li. apply Sum_zero. intros m Lm. unfold top. rewrite Read, Level by lia.
      rewrite holds_deeper by (simpl; lia). unfold relu. cbn [length Nat.leb]. rewrite Rmax_left by lra. ring.
  - destruct St as [F L]. inversion F; subst. cbn [length] in *.
    replace (1 <=? S (length s)) with true by reflexivity.
    rewrite (one_term k D _ t (length s)); [|assumption|lia|].
    + unfold top. rewrite Read, Level, holds_top, Nat.eqb_refl by lia.
      replace (S (S (length s)) <=? S (length s)) with false by (symmetry; apply Nat.leb_gt; lia).
      unfold relu. rewrite Rmax_right, (Rmax_left 0 (1 - 1)) by lra. rewrite next_told. ring.
    + intros i m Li Lm N. unfold top. rewrite Read, Level by lia. unfold relu.
      destruct (Nat.leb_spec (S (S m)) (S (length s))) as [A|A].
      * rewrite Rmax_left; [ring|]. destruct (holds (t :: s) i (S m)); lra.
      * assert (holds (t :: s) i (S m) = false) as ->.
        { destruct (Nat.eq_dec m (length s)) as [->|N'].
          - rewrite holds_top. apply Nat.eqb_neq. intro. subst. now destruct N.
          - apply holds_deeper. simpl. lia. }
        rewrite Rmax_left by lra. ring.
Qed.

(** What the query says of the stack. *)
Lemma query_says k D p w s : run k D [] w = Some s ->
  (closing D (query w) /\ exists j, query w = At (Close j) (length s)) \/
  (~ closing D (query w) /\ forall o, alone k D p (query w) o = next k D p s o).
Proof.
  intro H. assert (E : stack_of k D []) by (split; [constructor|simpl; lia]).
  destruct (run_stack k D [] w s E H) as [[_ L] Depth]. simpl in Depth.
  unfold query. destruct (rev w) as [|b r] eqn:Q.
  - right. assert (w = []) as -> by (rewrite <- (rev_involutive w), Q; reflexivity).
    simpl in H. injection H as <-. split; [intros [j [d [C _]]]; discriminate|reflexivity].
  - assert (W : w = rev r ++ [b]) by (rewrite <- (rev_involutive w), Q; reflexivity). rewrite Depth.
    rewrite W in H. destruct (run_split k D [] (rev r) [b] s H) as [t [T0 T]]. destruct (run_stack k D [] (rev r) t E T0) as [[_ Lt] _]. destruct b as [i|i]; cbn [run] in T.
    + right. destruct (andb (i <? k) (length t <? D)); [|discriminate]. injection T as <-.
      split; [intros [j [d [C _]]]; discriminate|]. intro o. cbn [alone length]. symmetry. apply next_told.
    + destruct t as [|j t]; [discriminate|]. destruct (i =? j); [|discriminate]. injection T as ->.
      destruct (andb (1 <=? length s) (length s <? D)) eqn:C.
      * left. apply andb_prop in C as [C1 C2]. apply Nat.leb_le in C1. apply Nat.ltb_lt in C2.
        split; [now exists i, (length s)|now exists i].
      * right. split.
        -- intros [j' [d [G Ld]]]. injection G as _ <-. destruct Ld as [A A'].
           apply Nat.leb_le in A. apply Nat.ltb_lt in A'. rewrite A, A' in C. discriminate.
        -- intro o. cbn [alone]. rewrite C. destruct s as [|j' s]; [reflexivity|]. exfalso.
           cbn [length] in *.
           replace (S (length s) <? D) with true in C by (symmetry; apply Nat.ltb_lt; lia). discriminate.
Qed.

(** @statement Bounded Dyck: Theorem 1, sufficiency
    @clause exact behind the link
    @kind clause
    @hypotheses any number k of types and D of levels, any probability p of an open bracket; logits with (11) at closing
      queries of depth 1 to D - 1, and bounds lo and hi of these queries' logits; values of width k D + 1: V_open(i, l) is a basis
      vector, V_close(i, l - 1) is -exp(c_il) V_open(i, l) with c_il the difference of (11), and START has a vector of its own
    @formula after every prefix w of bounded Dyck, of any length, the network's output at the prefix's query and at LN of
      its sum is the distribution of the next bracket (Definition 1)
    @note The link hands the network the query's encoding, which stands as the query itself: its one-hot has 2 k D + 1
      entries. The network has 4 k D + 1 and 2 k D + k + 1 hidden units. *)
Theorem balance_suffices_behind_the_link :
  forall k D p Z c lo hi, (forall q, closing D q -> under_11 k D Z c q /\ forall t, lo <= Z q t <= hi) ->
  forall w s o, run k D [] w = Some s ->
  linked_head k D p (smallest k D lo hi) (query w) (LN (k * D + 1) (before_LN (values k D c) Z (query w) w)) o
  = next k D p s o.
Proof.
  intros k D p Z c lo hi B w s o H.
  assert (E : stack_of k D []) by (split; [constructor|simpl; lia]).
  destruct (run_stack k D [] w s E H) as [St _].
  unfold linked_head. destruct (query_says k D p w s H) as [[C [j Q]]|[C Says]].
  - destruct (B (query w) C) as [B1 B2]. pose proof (read k D Z c (query w) w s lo hi B1 B2 H) as Read.
    set (f := LN (k * D + 1) (before_LN (values k D c) Z (query w) w)) in *. set (small := smallest k D lo hi) in *.
    destruct C as [j' [d [Q' Ld]]]. rewrite Q in Q'. injection Q' as _ <-.
    assert (In : andb (1 <=? length s) (length s <? D) = true)
      by (apply andb_true_intro; split; [apply Nat.leb_le|apply Nat.ltb_lt]; lia).
    rewrite Q. cbn [asked alone]. rewrite In. destruct s as [|t s]; [simpl in Ld; lia|].
    destruct St as [F L]. inversion F; subst. cbn [length] in *.
    rewrite (one_term k D _ t (length s)); [|assumption|lia|].
    + rewrite Read, holds_top, Nat.eqb_refl, kron_same by lia. unfold relu. rewrite Rmax_right by lra.
      rewrite next_told. ring.
    + intros i m Li Lm N. rewrite Read by lia. unfold relu.
      destruct (Nat.eq_dec m (length s)) as [->|N'].
      * rewrite holds_top. replace (t =? i) with false by (symmetry; apply Nat.eqb_neq; intro; subst; now destruct N).
        rewrite kron_same, Rmax_left by lra. ring.
      * rewrite kron_other by lia. rewrite Rmax_left; [ring|]. destruct (holds (t :: s) i (S m)); lra.
  - rewrite Sum_zero.
    + rewrite Says. ring.
    + intros i Li. apply Sum_zero. intros m Lm.
      assert (A : asked D (query w) (S m) = 0).
      { unfold asked. destruct (query w) as [|[x|x] d] eqn:Q; try reflexivity.
        destruct (andb (1 <=? d) (d <? D)) eqn:In; [|reflexivity]. exfalso. apply C. apply andb_prop in In as [I1 I2].
        apply Nat.leb_le in I1. apply Nat.ltb_lt in I2. now exists x, d. }
      rewrite A. unfold unmatched. destruct (S m <=? D).
      * pose proof (h_at (smallest k D lo hi) (LN (k * D + 1) (before_LN (values k D c) Z (query w) w) (slot D i (S m))) (smallest_pos k D lo hi))
          as [_ [_ Le]]. unfold relu at 1. rewrite Rmax_left by lra. ring.
      * unfold relu. rewrite Rmax_left by lra. ring.
Qed.
